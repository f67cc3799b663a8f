//! The nine rules on the real OpenClaw: each broken the way it breaks in life, found by one scan and handled as the table says.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use base::id::InstanceId;
use fleet::assistant::Defaults;
use openclaw::log::Line;
use openclaw::rule::{Confidence, Detail, Evidence, Expected, RULES};
use serde_json::{Value, json};
use sim::bot::Platform;
use tokio::process::Child;

use super::bot::{TOKEN, WRITER, message, shared, until};
use crate::health::check;
use crate::kit::assistant::{START, Talk, model_server};
use crate::kit::hosts::{CURRENT, Ground, fleet, is_real};
use crate::kit::{Options, used_secret};

/// A repair stops and starts it, with OpenClaw's doctor in between.
const REPAIR: Duration = Duration::from_secs(400);
struct Real {
    ground: Ground,
    /// The model server's port.
    models: String,
    platform: Platform,
    _shared: Child,
    /// The site's clock stands; it is moved on to now before each look.
    moved: Instant,
    /// The repairs that were seen already.
    known: HashSet<i64>,
}

#[derive(Clone)]
struct Assistant {
    id: String,
    port: u16,
    token: String,
}

impl Real {
    async fn new() -> Real {
        let fleet = fleet("real::rules").expect("make test-real starts hosts");
        let host = fleet.host("h4");
        assert!(is_real(&host, CURRENT).await, "OpenClaw {CURRENT} is not on h4");
        let models = model_server(&host).await.rsplit(':').next().unwrap().to_owned();
        let platform = Platform::start().await.unwrap();
        platform.add(TOKEN, "ada_bot");
        used_secret(TOKEN);
        let shared = shared(&fleet, "h4", platform.url.rsplit(':').next().unwrap());
        // OpenClaw asks a provider at a loopback or private address without a key: it has a name, and one that leads to loopback is
        // refused.
        let gateway_url = format!("http://{}:{models}", name(&models));
        let assistants = Defaults { gateway_url, start_limit: START, least_memory: 64 << 20, ..Default::default() };
        let options = Options { bot_api_url: Some(platform.url.clone()), assistants, ..Options::default() };
        let moved = Instant::now();
        let ground = Ground::with_options(fleet, "h4", options).await;
        let script = r#"
            address=$(ip -4 -o addr show scope global | awk '{ sub("/.*", "", $4); print $4; exit }')
            grep -qwF "$1" /etc/hosts || printf '%s %s\n' "$address" "$1" >>/etc/hosts"#;
        ground.sh(script, &[&name(&models)]).await;
        Real { ground, models, platform, _shared: shared, moved, known: HashSet::new() }
    }

    async fn assistant(&mut self) -> Assistant {
        let id = self.ground.provisioned(json!({})).await;
        let shown = self.ground.show(&id).await;
        let token = shown["gateway_token"].as_str().unwrap().to_owned();
        used_secret(&token);
        let key = self.config(&id).await["models"]["providers"]["tidepool"]["apiKey"].as_str().unwrap().to_owned();
        used_secret(&key);
        Assistant { id, port: u16::try_from(shown["gateway_port"].as_u64().unwrap()).unwrap(), token }
    }

    fn now(&mut self) {
        self.ground.site.wait(self.moved.elapsed());
        self.moved = Instant::now();
    }

    /// One scan: the repairs that came of it, once none of them goes on any more.
    async fn scan(&mut self) -> Vec<Value> {
        self.now();
        let began = Instant::now();
        let scanned = fleet::repair::scan(&self.ground.site.app).await.unwrap();
        assert!(scanned.away.is_empty(), "{scanned:?}");
        let scan = began.elapsed();
        let new = loop {
            let found = self.ground.site.admin.get("/repairs?limit=200").token(&self.ground.site.root).ok().await;
            let list = found["list"].as_array().unwrap();
            if list.iter().all(|one| one["status"] != "running") {
                break list.iter().filter(|one| self.known.insert(one["id"].as_i64().unwrap())).cloned().collect();
            }
            assert!(began.elapsed() < REPAIR, "{found}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        };
        println!("scanned in {scan:.1?}, repaired after {:.1?}: {new:#?}", began.elapsed());
        new
    }

    /// One scan that finds this rule's case, of this one, and nothing else anywhere.
    async fn finds(&mut self, rule: &str, of: &Assistant) -> Value {
        let found = self.scan().await;
        let [one] = found.as_slice() else { panic!("{rule}: {found:#?}") };
        let status = if matches!(rule, "out_of_memory" | "rate_limited") { "alert" } else { "success" };
        is_written(one, rule, of, status);
        one.clone()
    }

    /// Everything was read: another scan finds nothing.
    async fn finds_nothing(&mut self) {
        let found = self.scan().await;
        assert!(found.is_empty(), "{found:#?}");
    }

    async fn open_alerts(&self) -> Vec<String> {
        let found = self.ground.site.admin.get("/alerts?open=true").token(&self.ground.site.root).ok().await;
        found["list"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap().to_owned()).collect()
    }

    /// By the check that comes every five minutes.
    async fn health(&mut self, of: &Assistant) -> String {
        self.now();
        check(&self.ground).await;
        self.ground.show(&of.id).await["health_status"].as_str().unwrap().to_owned()
    }

    /// It works, and nobody has been told anything.
    async fn is_well(&mut self, of: &Assistant) {
        let health = self.health(of).await;
        assert_eq!(health, "healthy", "{:#}", self.ground.show(&of.id).await["health"]);
        assert_eq!(self.open_alerts().await, [""; 0]);
    }

    async fn talk(&self, to: &Assistant) -> Talk {
        Talk::open(&self.ground.host, to.port, &to.token).await
    }

    async fn answers(&self, of: &Assistant, word: &str) {
        let (reply, _) = self.talk(of).await.say(&format!("remember the {word}")).await;
        assert!(reply.starts_with("gpt-4o remembers: ") && reply.contains(word), "{reply}");
    }

    /// The configuration without what OpenClaw keeps about the file itself.
    async fn config(&self, id: &str) -> Value {
        let mut config = self.ground.config(id).await;
        config.as_object_mut().unwrap().remove("meta");
        config
    }

    /// Changes the configuration by hand, in Python: `c` is the document. In place, so that it stays its owner's.
    async fn edit(&self, of: &Assistant, python: &str) {
        let path = format!("{}/.openclaw/openclaw.json", self.ground.home(&of.id).await);
        let script = format!(
            "import json,sys\np=sys.argv[1]\nc=json.load(open(p))\n{python}\nt=json.dumps(c)\nopen(p,'w').write(t)"
        );
        self.ground.sh("python3 -c \"$1\" \"$2\"", &[&script, &path]).await;
    }

    /// Waits until a command on the host succeeds; `$1` is the unit.
    async fn until(&self, of: &Assistant, what: &str) {
        let began = Instant::now();
        let script = format!(
            "end=$(($(date +%s) + 40)); while [ $(date +%s) -lt $end ]; do if {what}; then echo yes; exit; fi; sleep 1; done"
        );
        while self.ground.sh(&script, &[&format!("openclaw-{}", of.id)]).await != "yes" {
            let journal = "journalctl -u \"openclaw-$1\" -o cat -n 40 --no-pager";
            assert!(began.elapsed() < START, "never: {what}\n{}", self.ground.sh(journal, &[&of.id]).await);
        }
    }

    /// What is found in the log file alone, without a look at anything else.
    async fn logged(&self, of: &Assistant) -> Vec<Detail> {
        let path = format!("{}/.openclaw/logs/openclaw.jsonl", self.ground.home(&of.id).await);
        let text = self.ground.sh("tail -n 200 -- \"$1\"", &[&path]).await;
        let lines: Vec<Line> = text.lines().filter_map(|line| Line::from_file(line.as_bytes())).collect();
        let unit = openclaw::unit::Name::of_instance(&InstanceId::named(&of.id)).unwrap();
        let runner = openclaw::sweep::Runner::Unit(unit);
        let expected = Expected { runner, bind: Some(openclaw::config::Bind::Loopback), bot: false };
        let now = jiff::Timestamp::now();
        let evidence = Evidence { now, lines: &lines, document: None, state: None, expected: &expected };
        let found = RULES.iter().filter_map(|(_, detect)| detect(&evidence));
        found.filter(|finding| finding.confidence == Confidence::Logged).map(|finding| finding.detail).collect()
    }

    async fn end(self) {
        let script =
            "systemctl stop \"model-$1\"; kept=$(grep -vwF \"$2\" /etc/hosts); printf '%s\\n' \"$kept\" >/etc/hosts";
        self.ground.sh(script, &[&self.models, &name(&self.models)]).await;
        self.ground.end().await;
    }
}

fn name(models: &str) -> String {
    format!("models-{models}.example.com")
}

/// The ledger has this rule, of this one, with how it was, what was done and how it is.
fn is_written(one: &Value, rule: &str, of: &Assistant, status: &str) {
    assert_eq!(
        (&one["rule"], &one["instance_id"], &one["status"]),
        (&json!(rule), &json!(of.id), &json!(status)),
        "{one:#}"
    );
    for field in ["before", "action", "after"] {
        assert!(one[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {one:#}");
    }
    if status == "success" {
        assert!(one["after"].as_str().unwrap().starts_with("it is ready"), "{one:#}");
        assert_ne!(one["action"], "nothing", "{one:#}");
        assert!(one["took_ms"].as_i64().unwrap() > 0);
    } else {
        assert_eq!(one["action"], "nothing: somebody was told", "{one:#}");
    }
}

/// Rules 1, 5, 4, 9 and 8: what goes wrong while the service runs and says that it is well.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_while_it_runs() {
    let mut real = Real::new().await;
    let one = real.assistant().await;
    let configure = json!({"bot_token": TOKEN, "chat_id": WRITER.to_string()});
    let path = format!("/instances/{}/configure-bot", one.id);
    real.ground.site.admin.post(&path, configure).token(&real.ground.site.root).ok().await;
    let written = real.ground.latest("write_config").await;
    real.ground.done(&written).await;
    real.answers(&one, "shore").await;
    real.finds_nothing().await;
    let good = real.config(&one.id).await;

    // 1: the provider's key is deleted.
    real.edit(&one, "del c['models']['providers']['tidepool']['apiKey']").await;
    let began = Instant::now();
    while !real.logged(&one).await.contains(&Detail::NoApiKey { provider: "tidepool".into() }) {
        assert!(began.elapsed() < START, "it never missed its key");
        real.talk(&one).await.say("still there?").await;
    }
    let repair = real.finds("no_api_key", &one).await;
    assert_eq!(repair["before"], "the configuration has no key for the LLM gateway");
    assert_eq!(real.config(&one.id).await, good, "and nothing else");
    real.answers(&one, "harbour").await;
    real.is_well(&one).await;

    // 5: auth.profiles, with an order that names one which cannot be used.
    let profiles = "c['auth']={'profiles':{'tidepool:old':{'provider':'tidepool','mode':'oauth'}},'order':{'tidepool':['tidepool:old']}}";
    real.edit(&one, profiles).await;
    real.finds("auth_profiles", &one).await;
    assert_eq!(real.config(&one.id).await, good, "and nothing else");
    real.answers(&one, "lighthouse").await;
    real.is_well(&one).await;

    // 4: keys that it does not know; it goes on with what it had.
    real.edit(&one, "c['bogus']=1\nc['gateway']['mystery']={'a':[1]}\nc['models']['providers']['tidepool']['models'][0]['odd']=True").await;
    let log = format!("{}/.openclaw/logs/openclaw.jsonl", real.ground.home(&one.id).await);
    real.until(&one, &format!("grep -q 'reload skipped (invalid config).*mystery' {log}")).await;
    let repair = real.finds("unknown_key", &one).await;
    for key in ["bogus", "gateway.mystery", "odd"] {
        assert!(repair["action"].as_str().unwrap().contains(key), "{repair:#}");
    }
    assert_eq!(real.config(&one.id).await, good, "and nothing else");
    real.is_well(&one).await;

    // 9: the bot's token is removed.
    real.edit(&one, "del c['channels']['telegram']['botToken']").await;
    real.finds("bot_channel", &one).await;
    assert_eq!(real.config(&one.id).await, good, "and nothing else");
    real.platform.write(TOKEN, message(1, "remember the pier"));
    let answered = || real.platform.said(TOKEN).iter().any(|m| m["text"].as_str().is_some_and(|t| t.contains("pier")));
    until("an answer of the bot", answered).await;
    real.is_well(&one).await;

    // 8: the model server has had enough: the state and an alert, and nothing is changed.
    let limited = format!("/run/model-{}.py.limited", real.models);
    real.ground.sh("touch \"$1\"", &[&limited]).await;
    let pid = real.ground.main_pid(&one.id).await;
    for _ in 0..3 {
        let (reply, _) = real.talk(&one).await.say("and now?").await;
        assert!(!reply.contains("remembers"), "{reply}");
    }
    real.finds("rate_limited", &one).await;
    assert_eq!(real.ground.show(&one.id).await["health_status"], "rate_limited");
    assert_eq!(real.health(&one).await, "rate_limited", "the check leaves it");
    let alerts = real.open_alerts().await;
    assert!(alerts.len() == 1 && alerts[0].contains("rate_limited"), "{alerts:?}");
    assert_eq!((real.ground.main_pid(&one.id).await, real.config(&one.id).await), (pid, good), "nothing was done");
    real.ground.sh("rm \"$1\"", &[&limited]).await;
    real.finds_nothing().await;
    real.is_well(&one).await;
    real.answers(&one, "buoy").await;
    real.end().await;
}

/// Rules 2, 4 and 3: what makes it end.
#[tokio::test(flavor = "multi_thread")]
async fn what_makes_it_end() {
    let mut real = Real::new().await;
    let one = real.assistant().await;
    real.finds_nothing().await;
    let (good, home) = (real.config(&one.id).await, real.ground.home(&one.id).await);

    // 4: a key that it does not know, and a restart: it ends with 78 and stays down.
    real.edit(&one, "c['bogus']=1").await;
    real.ground.sh("systemctl restart \"openclaw-$1\"", &[&one.id]).await;
    real.until(&one, "systemctl is-failed -q \"$1\"").await;
    let repair = real.finds("unknown_key", &one).await;
    assert_eq!(repair["action"], "deleted bogus");
    assert_eq!(real.config(&one.id).await, good, "and nothing else");
    real.is_well(&one).await;

    // 3: its heap is too small. systemd starts it again by itself; only a start by somebody ends the case.
    let small = r#"
        dir="/run/systemd/system/openclaw-$1.service.d"
        program="/opt/tidepool/openclaw/$2/openclaw"
        node=$(sed -n 's/^exec \([^ ]*\) \(.*\) "$@"$/\1 --max-old-space-size=90 \2/p' "$program")
        mkdir -p "$dir"
        sed -n "s|^ExecStart=$program|[Service]\nExecStart=\nExecStart=$node|p" "/etc/systemd/system/openclaw-$1.service" >"$dir/small.conf"
        systemctl daemon-reload && systemctl restart "openclaw-$1""#;
    real.ground.sh(small, &[&one.id, CURRENT]).await;
    real.until(&one, "journalctl -u \"$1\" -o cat --no-pager | grep -q status=6/ABRT").await;
    real.ground.sh("rm -r \"/run/systemd/system/openclaw-$1.service.d\" && systemctl daemon-reload", &[&one.id]).await;
    let repair = real.finds("out_of_memory", &one).await;
    assert!(repair["before"].as_str().unwrap().contains("JavaScript heap out of memory"), "{repair:#}");
    assert_eq!(real.ground.show(&one.id).await["health_status"], "unhealthy");
    real.until(&one, &format!("curl -fs -o /dev/null -m 3 http://127.0.0.1:{}/readyz", one.port)).await;
    assert_eq!(real.health(&one).await, "unhealthy", "it is up again, and has no more memory than before");
    let alerts = real.open_alerts().await;
    assert!(alerts.iter().any(|refusal| refusal.contains("out_of_memory")), "beside that of the check: {alerts:?}");
    real.finds_nothing().await;
    assert_eq!(real.config(&one.id).await, good, "nothing was done");
    real.ground.sh("systemctl restart \"openclaw-$1\"", &[&one.id]).await;
    real.until(&one, &format!("curl -fs -o /dev/null -m 3 http://127.0.0.1:{}/readyz", one.port)).await;
    real.is_well(&one).await;

    // 2: an older file and no state: it ends with 1 again and again, and only OpenClaw's doctor moves the setting.
    let fresh = "systemctl stop \"openclaw-$1\" && systemctl reset-failed \"openclaw-$1\"; cd \"$2/.openclaw\" && rm -rf state agents tasks identity openclaw.json.*";
    real.ground.sh(fresh, &[&one.id, &home]).await;
    real.edit(&one, "c['channels']={'telegram':{'enabled':False,'streamMode':'partial'}}\nc.pop('meta',None)").await;
    real.ground.sh("systemctl start \"openclaw-$1\"", &[&one.id]).await;
    real.until(&one, "[ \"$(systemctl show -p NRestarts --value \"$1\")\" -ge 3 ]").await;
    let repair = real.finds("exit_loop", &one).await;
    assert!(repair["action"].as_str().unwrap().contains("doctor"), "{repair:#}");
    let config = real.config(&one.id).await;
    assert_eq!(config["channels"]["telegram"]["streaming"]["mode"], "partial", "{config:#}");
    for ours in ["gateway", "models", "logging", "update"] {
        assert_eq!(config[ours], good[ours], "{ours}");
    }
    real.is_well(&one).await;
    real.answers(&one, "shore").await;
    real.finds_nothing().await;
    real.end().await;
}

/// Rules 6 and 7: who listens where.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_its_port() {
    let mut real = Real::new().await;
    let (six, seven) = (real.assistant().await, real.assistant().await);
    let goods = (real.config(&six.id).await, real.config(&seven.id).await);
    real.finds_nothing().await;

    // 7: bound to the wrong address; a start must be a while ago to count.
    real.edit(&seven, "c['gateway']['bind']='lan'").await;
    real.ground.sh("systemctl restart \"openclaw-$1\"", &[&seven.id]).await;
    let listening = |port: u16| format!("ss -Hltn 'sport = :{port}' | awk '{{print $4}}' | sort | tr '\\n' ' '");
    real.until(&seven, &format!("ss -Hltn 'sport = :{}' | grep -qF '0.0.0.0:'", seven.port)).await;
    let aged = Instant::now();

    // 6: somebody starts a gateway by hand; the service gives up for it.
    let by_hand = r#"
        systemctl stop "openclaw-$1"
        cd "$2"
        user=$(systemctl show -p User --value "openclaw-$1")
        setsid runuser -u "${user:-root}" -- env HOME="$2" OPENCLAW_STATE_DIR="$2/.openclaw" OPENCLAW_CONFIG_PATH="$2/.openclaw/openclaw.json" \
          "/opt/tidepool/openclaw/$4/openclaw" gateway run --port "$3" </dev/null >/dev/null 2>&1 &"#;
    let home = real.ground.home(&six.id).await;
    real.ground.sh(by_hand, &[&six.id, &home, &six.port.to_string(), CURRENT]).await;
    real.until(&six, &format!("curl -fs -o /dev/null -m 3 http://127.0.0.1:{}/readyz", six.port)).await;
    real.ground.sh("systemctl start \"openclaw-$1\"", &[&six.id]).await;
    real.until(&six, "systemctl is-failed -q \"$1\"").await;
    while aged.elapsed() < Duration::from_secs(95) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    let found = real.scan().await;
    assert_eq!(found.len(), 2, "{found:#?}");
    for (rule, of) in [("port_taken", &six), ("not_listening", &seven)] {
        let one = found.iter().find(|one| one["rule"] == rule).unwrap_or_else(|| panic!("{rule}: {found:#?}"));
        is_written(one, rule, of, "success");
    }
    for of in [&six, &seven] {
        assert_eq!(real.ground.sh(&listening(of.port), &[]).await, format!("127.0.0.1:{0} [::1]:{0} ", of.port));
        let owner = format!("ss -Hltnp 'sport = :{}' | grep -o 'pid=[0-9]*' | sort -u", of.port);
        assert_eq!(real.ground.sh(&owner, &[]).await, format!("pid={}", real.ground.main_pid(&of.id).await));
        real.answers(of, "shore").await;
        real.is_well(of).await;
    }
    assert_eq!((real.config(&six.id).await, real.config(&seven.id).await), goods, "as it was");
    real.finds_nothing().await;
    real.end().await;
}
