//! A neighbour on an assistant's port: another user of its server who listens there. By no way is anything sent to them; it is written into
//! the ledger, and an alert is open until the assistant itself answers again.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use sim::bot::Platform;
use testkit::skip;
use tokio::io::AsyncWriteExt as _;

use crate::kit::simulated::Simulated;
use crate::kit::talk::{Client, Closed, Talk, dial, own_address};
use crate::kit::{Database, Options, Site, used_secret};

/// Listens at the addresses that it is given, and repeats what it hears.
const LISTEN: &str = r#"
import socket, sys, threading
def take(c):
    while data := c.recv(65536):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
def serve(s):
    while True: threading.Thread(target=take, args=(s.accept()[0],), daemon=True).start()
for word in sys.argv[1:]:
    address, _, port = word.rpartition(":")
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, int(port)))
    s.listen(64)
    threading.Thread(target=serve, args=(s,), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"#;

/// A process of another user.
struct Neighbour {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Neighbour {
    /// `None` (a counted skip) where this process may not start one.
    fn listens(name: &str, addresses: &[String]) -> Option<Neighbour> {
        if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
            skip(name, "only root can start a process of another user");
            return None;
        }
        let mut command = Command::new("python3");
        command.args(["-c", LISTEN]).args(addresses).uid(65534).gid(65534).current_dir("/").stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Some(Neighbour { child, stdout })
    }

    /// Ends, and tells what was heard.
    async fn heard(mut self, address: &str) -> String {
        // That they hear at all, and that everything before has arrived.
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        socket.write_all(b"the end").await.unwrap();
        tokio::task::spawn_blocking(move || {
            let mut heard = String::new();
            while !heard.ends_with("the end") {
                let mut byte = [0];
                self.stdout.read_exact(&mut byte).unwrap();
                heard.push(char::from(byte[0]));
            }
            heard
        })
        .await
        .unwrap()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

const FOREIGN: &str = "another program answers on the instance's port";

/// What the ledger says, and whether an alert is open.
async fn found(site: &Site, instance: &str) -> (Vec<Value>, bool) {
    let repairs = site.admin.get("/repairs").token(&site.root).ok().await;
    let about = |one: &&Value| one["rule"] == "foreign_listener" && one["instance_id"] == instance;
    let ledger = repairs["list"].as_array().unwrap().iter().filter(about).cloned().collect();
    let alerts = site.admin.get("/alerts?open=true").token(&site.root).ok().await;
    let subject = format!("repair:{instance}:foreign_listener");
    (ledger, alerts["list"].as_array().unwrap().iter().any(|alert| alert["subject"] == subject.as_str()))
}

/// The status of a window's page. Every name below localhost leads to this machine.
pub(super) async fn shown(url: &str) -> u16 {
    let mut url = reqwest::Url::parse(url).unwrap();
    let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    url.set_host(Some("127.0.0.1")).unwrap();
    reqwest::Client::new().get(url).header("host", host).send().await.unwrap().status().as_u16()
}

async fn enter(talk: &Talk) -> Client {
    Client::open(&talk.site.employee, "a0", &talk.ticket().await, &[]).await.unwrap()
}

const BOT: &str = "123456:AAH-a-bot-token-of-a-neighbour_1";

#[tokio::test(flavor = "multi_thread")]
async fn in_its_place_hears_nothing_by_any_way() {
    let platform = Platform::start().await.unwrap();
    platform.add(BOT, "ada_bot");
    used_secret(BOT);
    let webhooks = Some("https://ai.example.com");
    let options = Options { bot_api_url: Some(platform.url.clone()), webhooks, ..Options::default() };
    let mut talk = Talk::with(Database::sqlite(), options, |_| {}).await;
    let employee = talk.site.employee.clone();
    let configure = json!({"bot_token": BOT, "chat_id": "77"});
    employee.post("/me/instances/a0/configure-bot", configure).token(&talk.token).ok().await;
    let bot = platform.bot(BOT);
    used_secret(&bot.secret);
    let window = employee.post("/me/instances/a0/embed-ticket", json!({})).token(&talk.token).ok().await;
    let page = window["url"].as_str().unwrap().split('#').next().unwrap().to_owned();
    drop(talk.connect().await);
    assert_eq!(found(&talk.site, "a0").await, (vec![], false));

    talk.assistant.stop().await;
    let (gateway, webhook) = (talk.assistant.port, talk.assistant.port + 4);
    let addresses = [gateway, webhook].map(|port| format!("127.0.0.1:{port}"));
    let Some(neighbour) = Neighbour::listens("talk::neighbour::in_its_place", &addresses) else { return };
    assert_eq!(enter(&talk).await.closed().await, Closed(1011, FOREIGN.into()));
    assert_eq!(shown(&page).await, 409, "the window");
    let origin = reqwest::Url::parse(&page).unwrap().origin().ascii_serialization();
    let socket = dial(&page.replace("/chat/main", "/"), &[("origin", origin.as_str())]).await.unwrap();
    assert_eq!(Client::over(socket).closed().await, Closed(1011, FOREIGN.into()));
    let path = bot.webhook.replace("https://ai.example.com", "");
    let update = json!({"update_id": 1, "message": {"text": "a person's words", "from": {"id": 77}}});
    let post = employee.raw(reqwest::Method::POST, &path).json(update);
    post.header("x-telegram-bot-api-secret-token", &bot.secret).refused("4090").await;
    let device = json!({"request_id": "r", "device_id": "d"});
    employee.post("/me/instances/a0/devices", device).token(&talk.token).refused("4090").await;

    let (ledger, alert) = found(&talk.site, "a0").await;
    let [row] = ledger.as_slice() else { panic!("once an hour: {ledger:?}") };
    assert_eq!(row["status"], "alert");
    let before = row["before"].as_str().unwrap();
    assert!(before.contains(&gateway.to_string()) && before.contains("(65534)") && alert, "{row}");
    assert_eq!(neighbour.heard(&addresses[0]).await, "the end");

    // They are gone: nothing is in the way any more.
    talk.assistant.resume().await.unwrap();
    drop(talk.connect().await);
    assert!(!found(&talk.site, "a0").await.1, "the alert is over");
    talk.site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_it_is_refused_too() {
    let talk = Talk::start(Database::sqlite()).await;
    drop(talk.connect().await);
    let addresses = [format!("127.0.0.2:{}", talk.assistant.port)];
    let Some(neighbour) = Neighbour::listens("talk::neighbour::beside_it", &addresses) else { return };
    assert_eq!(enter(&talk).await.closed().await, Closed(1011, FOREIGN.into()));
    assert_eq!(neighbour.heard(&addresses[0]).await, "the end");
    drop(talk.connect().await);
}

/// Whoever closes the port on loopback and takes it at another address of the server does not get the connection that goes around.
#[tokio::test(flavor = "multi_thread")]
async fn at_its_own_address_is_not_gone_around_to() {
    const NAME: &str = "talk::neighbour::at_its_own_address";
    let Some(address) = own_address(NAME) else { return };
    let mut talk = Talk::start(Database::sqlite()).await;
    let port = talk.assistant.port;
    let patch = json!({"gateway_url": format!("ws://{address}:{port}")});
    let shown = talk.site.admin.patch("/assistant-instances/a0", patch).token(&talk.site.root).ok().await;
    assert_eq!(shown["unproved_address"], true);
    talk.assistant.stop().await;
    let at = format!("{address}:{port}");
    let Some(neighbour) = Neighbour::listens(NAME, std::slice::from_ref(&at)) else { return };
    assert_eq!(enter(&talk).await.closed().await, Closed(1011, FOREIGN.into()));
    assert!(found(&talk.site, "a0").await.1);
    assert_eq!(neighbour.heard(&at).await, "the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn is_found_by_the_health_check_and_forgotten_when_gone() {
    let simulated = Simulated::new().await;
    let (site, machine) = (&simulated.site, &simulated.machine);
    simulated.provisioned("a1").await;
    let check = async || {
        let checked = site.admin.get("/instances/health-check").token(&site.root).ok().await;
        checked["list"][0].clone()
    };
    let well = check().await;
    assert_eq!(well["health_status"], "healthy", "{well}");
    assert_eq!(site.admin.get("/instances/a1").token(&site.root).ok().await["unproved_address"], false);
    let port = site.admin.get("/instances/a1").token(&site.root).ok().await["gateway_port"].as_u64().unwrap();
    machine.add_listener(u16::try_from(port).unwrap(), "bob");
    let seen = check().await;
    assert_eq!((&seen["layer"], &seen["detail"]), (&json!("websocket"), &json!(FOREIGN)));
    let (ledger, alert) = found(site, "a1").await;
    assert!(alert && ledger[0]["before"].as_str().unwrap().contains("user bob ("), "{ledger:?}");
    machine.remove_listeners();
    assert_eq!(check().await["health_status"], "healthy");
    assert!(!found(site, "a1").await.1, "the alert is over");
    assert_eq!(machine.unknown(), Vec::<String>::new());
    site.check().await;
}
