//! The binary as an operator meets it: settings, starting, stopping, administrators.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use sim::host::{Hosts, Machine, Power};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::kit::{PASSWORD, Process, run, used_secret};

const ADMIN: &[(&str, &str)] =
    &[("TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL", "root@example.com"), ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD)];

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[track_caller]
fn refuses(folder: &Path, args: &[&str], environment: &[(&str, &str)], naming: &[&str]) {
    let output = run(folder, args, environment);
    let said = said(&output);
    assert!(!output.status.success(), "{said}");
    assert_eq!(said.trim().lines().count(), 1, "one line: {said}");
    for name in naming {
        assert!(said.contains(name), "{name} is not in: {said}");
    }
}

#[test]
fn a_setting_that_is_wrong_or_unknown_stops_the_start_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    refuses(
        folder,
        &["serve"],
        &[("TIDEPOOL_EMPLOYEE_LISTEN", "8080")],
        &["TIDEPOOL_EMPLOYEE_LISTEN", "8080", "for example"],
    );
    refuses(
        folder,
        &["serve"],
        &[("TIDEPOOL_EMPLOYE_LISTEN", "x")],
        &["TIDEPOOL_EMPLOYE_LISTEN", "TIDEPOOL_EMPLOYEE_LISTEN?"],
    );
    refuses(folder, &["serve", "--timezone", "Mars/Olympus"], &[], &["--timezone", "Mars/Olympus", "Europe/Berlin"]);
    refuses(folder, &["serve"], &[("TIDEPOOL_ROLES", "employee,cook")], &["TIDEPOOL_ROLES", "scheduler"]);
    refuses(folder, &["serve"], &[("AUDIT_RETENTION_DAYS", "soon")], &["AUDIT_RETENTION_DAYS"]);
    refuses(
        folder,
        &["serve"],
        &[("TIDEPOOL_EMPLOYEE_OIDC_ISSUER", "https://id.example.com")],
        &["TIDEPOOL_EMPLOYEE_OIDC_CLIENT_ID"],
    );
    // A secret's value is never shown, however wrong.
    let output = run(folder, &["serve"], &[("TIDEPOOL_MASTER_KEY", "not-a-key-at-all")]);
    assert!(said(&output).contains("TIDEPOOL_MASTER_KEY") && !said(&output).contains("not-a-key"), "{}", said(&output));
    fs::write(folder.join("tidepool.toml"), "employee_lisen = \"x\"\n").unwrap();
    refuses(folder, &["serve"], &[], &["employee_lisen", "employee_listen?"]);
    fs::write(folder.join("tidepool.toml"), "\n\nbroken = = 1\n").unwrap();
    refuses(folder, &["serve"], &[], &["tidepool.toml", "line 3"]);
    fs::write(folder.join("tidepool.toml"), "[employee]\nlisten = 7\n").unwrap();
    refuses(folder, &["serve"], &[], &["employee_listen", "tidepool.toml"]);
    refuses(folder, &["serve", "--config", "nowhere.toml"], &[], &["nowhere.toml"]);
}

#[test]
fn every_setting_is_taken_from_file_environment_and_flag_in_that_order() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let zone = |args: &[&str], environment: &[(&str, &str)]| {
        let output = run(folder, &[&["check"], args].concat(), environment);
        said(&output).lines().find(|l| l.starts_with("configuration")).map(str::to_owned).unwrap_or_default()
    };
    fs::write(
        folder.join("tidepool.toml"),
        "timezone = \"Asia/Tokyo\"\n[employee.oidc]\ndomains = [\"a.test\", \"b.test\"]\n",
    )
    .unwrap();
    assert!(zone(&[], &[]).contains("Asia/Tokyo"));
    assert!(zone(&[], &[("TIDEPOOL_TIMEZONE", "Europe/Paris")]).contains("Europe/Paris"));
    assert!(zone(&["--timezone", "America/Lima"], &[("TIDEPOOL_TIMEZONE", "Europe/Paris")]).contains("America/Lima"));
    // Every setting of the list has a flag and a variable: none is refused as unknown.
    let list = said(&run(folder, &["settings"], &[]));
    let rows: Vec<Vec<&str>> = list.lines().skip(2).map(|l| l.split('|').map(str::trim).collect()).collect();
    assert!(rows.len() > 40);
    let help = said(&run(folder, &["serve", "--help"], &[]));
    for row in rows {
        assert!(help.contains(&format!("--{} ", row[2].replace('_', "-"))), "no flag for {}", row[2]);
        // Read by `check`, which refuses a variable that it does not know, empty or not.
        let output = run(folder, &["check"], &[(row[1], "")]);
        assert!(output.status.success(), "{} is unknown: {}", row[1], said(&output));
    }
    assert!(!run(folder, &["check"], &[("TIDEPOOL_NO_SUCH_SETTING", "")]).status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_makes_keys_and_an_administrator_and_the_next_is_quick() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::serve(folder.path(), &[]);
    server.ready().await;
    server.terminate();
    let (status, text) = server.end();
    assert!(status.success(), "{text}");
    let line = text.lines().find(|l| l.starts_with("first administrator")).expect("the generated password is printed");
    let password = line.split_whitespace().nth(5).unwrap().to_owned();
    use std::os::unix::fs::PermissionsExt as _;
    let data = folder.path().join("data");
    assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    for file in fs::read_dir(&data).unwrap() {
        let file = file.unwrap();
        let private = if file.file_type().unwrap().is_dir() { 0o700 } else { 0o600 };
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, private, "{:?}", file.path());
    }
    let mut server = Process::serve(folder.path(), &[]);
    server.ready().await;
    let login = json!({"email": "admin@tidepool.local", "password": password});
    server.admin.post("/auth/login", login).ok().await;
    server.terminate();
    let (_, text) = server.end();
    assert!(!text.contains("first administrator"), "printed once only");
    assert!(!text.contains(&password), "and never logged");
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_finishes_what_was_begun_and_ends_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::serve(folder.path(), ADMIN);
    server.ready().await;
    // A connection that stays open and idle must not hold the end up.
    server.admin.raw(Method::GET, "/healthz").ok().await;
    let address = server.admin.url.strip_prefix("http://").unwrap();
    let login = json!({"email": "root@example.com", "password": PASSWORD}).to_string();
    let length = login.len();
    let head = format!(
        "POST /api/v1/auth/login HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nexpect: 100-continue\r\n\r\n"
    );
    // It has begun all of them when it is told to stop: it asked for what they say.
    let mut logins = vec![];
    for _ in 0..4 {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(head.as_bytes()).await.unwrap();
        let mut go_on = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
        connection.read_exact(&mut go_on).await.unwrap();
        assert!(go_on.starts_with(b"HTTP/1.1 100 "), "{}", String::from_utf8_lossy(&go_on));
        logins.push(connection);
    }
    for connection in &mut logins {
        connection.write_all(login.as_bytes()).await.unwrap();
    }
    server.terminate();
    for mut login in logins {
        let mut answer = String::new();
        login.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"token\""), "{answer}");
    }
    let (status, log) = server.end();
    assert!(status.success(), "{log}");
    // It says so when it has waited for somebody for as long as it may.
    assert!(!log.contains("still running") && !log.contains("did not end in time"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_select_what_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::serve(folder.path(), &[ADMIN, &[("TIDEPOOL_ROLES", "admin")]].concat());
    server.ready().await;
    assert!(server.employee.http.get(format!("{}/healthz", server.employee.url)).send().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_with_other_keys_refuses_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::serve(folder.path(), ADMIN);
    server.ready().await;
    server.terminate();
    server.end();
    for (key, value) in [
        ("TIDEPOOL_EMPLOYEE_JWT_SECRET", "another-employee-key-of-32-letters"),
        ("TIDEPOOL_ADMIN_JWT_SECRET", "another-admin-key-of-32-letters..."),
        ("TIDEPOOL_MASTER_KEY", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="),
    ] {
        let output = run(folder.path(), &["serve"], &[(key, value)]);
        let name = key.trim_start_matches("TIDEPOOL_").to_lowercase();
        assert!(
            !output.status.success() && said(&output).contains(&format!("{name} is not the key")),
            "{}",
            said(&output)
        );
    }
    let output = run(folder.path(), &["check"], &[]);
    assert!(output.status.success() && said(&output).contains("none yet: add one"), "{}", said(&output));
    // One that is lost is named, and no new one is made in its place.
    let (file, aside) = (folder.path().join("data/master_key.key"), folder.path().join("aside"));
    fs::rename(&file, &aside).unwrap();
    for command in [&["serve"][..], &["db", "backup", "copy"]] {
        let output = run(folder.path(), command, &[]);
        let message = said(&output);
        assert!(!output.status.success() && message.contains("the key master_key that this database"), "{message}");
        assert!(!file.exists(), "{command:?}");
    }
    fs::rename(&aside, &file).unwrap();
    let output = run(folder.path(), &["check"], &[("TIDEPOOL_ADMIN_JWT_SECRET", "another-admin-key-of-32-letters...")]);
    assert!(!output.status.success() && said(&output).contains("FAIL"), "{}", said(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tries_every_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::serve(folder.path(), ADMIN);
    server.ready().await;
    let login = json!({"email": ADMIN[0].1, "password": ADMIN[1].1});
    let root = server.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let here = json!({"name": "Here", "host": "local"});
    server.admin.post("/servers", here).token(&root).ok().await;
    let output = run(folder.path(), &["check"], &[]);
    assert!(output.status.success() && said(&output).contains("1 of 1 answer"), "{}", said(&output));
    let nowhere = json!({"name": "Nowhere", "host": "127.0.0.1", "ssh_port": 1, "ssh_key_path": "/nonexistent"});
    server.admin.post("/servers", nowhere).token(&root).ok().await;
    let output = run(folder.path(), &["check"], &[]);
    assert!(!output.status.success(), "{}", said(&output));
    for message in ["1 of 2 answer", "Nowhere (127.0.0.1): "] {
        assert!(said(&output).contains(message), "{}", said(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tries_the_llm_gateway_from_every_active_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::serve(folder.path(), ADMIN);
    server.ready().await;
    let login = json!({"email": ADMIN[0].1, "password": ADMIN[1].1});
    let root = server.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let (near, far, off) = (Machine::new("near"), Machine::new("far"), Machine::new("off"));
    off.set_power(Power::Down);
    let machines = [near, far.clone(), off];
    let lookup = move |user: &str| machines.iter().find(|machine| machine.name == user).cloned();
    let hosts = Hosts::listen(Arc::new(lookup)).await.unwrap();
    let key = sim::host::login_key().unwrap();
    used_secret(&key);
    for (name, status) in [("near", "active"), ("far", "active"), ("off", "disabled")] {
        let body = json!({"id": name, "name": name, "host": "127.0.0.1", "ssh_port": hosts.address.port(), "ssh_user": name, "ssh_key": key});
        server.admin.post("/servers", body).token(&root).ok().await;
        server.admin.patch(&format!("/servers/{name}"), json!({"status": status})).token(&root).ok().await;
    }
    let gateway = server.gateway.clone();
    let environment = [("TIDEPOOL_GATEWAY_LISTEN", gateway.as_str())];
    let check = |environment: &[(&str, &str)]| {
        let output = run(folder.path(), &["check"], environment);
        let lines = said(&output).lines().filter(|line| line.starts_with("servers")).collect::<Vec<_>>().join("\n");
        assert!(!said(&output).contains(key.lines().nth(1).unwrap()), "no secrets");
        (output.status.success(), lines)
    };
    let (good, lines) = check(&environment);
    assert!(good, "{lines}");
    for name in ["near", "far"] {
        let line = format!("ok    {name} (127.0.0.1): it answers, and from there the LLM gateway answers 401");
        assert!(lines.contains(&line), "{lines}");
    }
    assert!(lines.contains("2 of 2 answer") && !lines.contains("off ("), "an inactive server is not tried: {lines}");

    // The gateway is there, and one server does not get to it.
    far.refuse("reach-url", "curl: (28) Connection timed out");
    let (good, lines) = check(&environment);
    assert!(!good, "{lines}");
    for line in ["FAIL  far (127.0.0.1): the LLM gateway cannot be reached from there: ", "(28)", "2 of 2 answer"] {
        assert!(lines.contains(line), "{line}: {lines}");
    }
    far.go_on();
    far.set_power(Power::Down);
    let (good, lines) = check(&environment);
    assert!(!good && lines.contains("FAIL  far (127.0.0.1): ") && lines.contains("1 of 2 answer"), "{lines}");
    assert!(lines.contains("ok    near (127.0.0.1): it answers, and"), "{lines}");

    // The address that assistants are given counts, not the one that the platform uses itself.
    let public = [environment[0], ("TIDEPOOL_GATEWAY_PUBLIC_URL", "http://192.0.2.1:8082")];
    far.set_power(Power::Up);
    let (good, lines) = check(&public);
    assert!(!good && lines.matches("cannot be reached from there").count() == 2, "{lines}");

    // Before tidepool is started nobody can reach the embedded gateway: that is no fault of the servers.
    server.terminate();
    assert!(server.end().0.success());
    let (good, lines) = check(&environment);
    assert!(good && lines.contains("was not tried from the servers"), "{lines}");
    assert!(lines.contains("ok    near (127.0.0.1): it answers\n"), "{lines}");
}

#[test]
fn looking_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), &["check"], &[]).status.success());
    refuses(folder.path(), &["db", "backup", "copy"], &[], &["there is no database"]);
    refuses(folder.path(), &["db", "copy", "--to", "sqlite:other.db"], &[], &["postgres://"]);
    refuses(folder.path(), &["db", "rekey"], &[], &["nothing to re-key"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "only a start makes folder, keys and database");
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_names_of_folders_are_only_names() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["pct%20x", "q?x", "with space", "ümlaut"] {
        let mut server = Process::serve(folder.path(), &[ADMIN, &[("TIDEPOOL_DATA_DIR", name)]].concat());
        server.ready().await;
        assert!(folder.path().join(name).join("tidepool.db").is_file(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_nothing_is_not_waited_for() {
    use tokio::io::AsyncReadExt as _;
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::serve(folder.path(), ADMIN);
    server.ready().await;
    let address = server.admin.url.trim_start_matches("http://").to_owned();
    let mut silent = tokio::net::TcpStream::connect(&address).await.unwrap();
    let mut buffer = [0; 64];
    let closed = tokio::time::timeout(Duration::from_secs(60), silent.read(&mut buffer)).await;
    assert!(closed.is_ok(), "still open after a minute");
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_can_be_made_and_reset_from_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let made = said(&run(folder.path(), &["admin", "create", "--email", "ops@example.com"], &[]));
    let password =
        made.lines().find_map(|l| l.strip_prefix("password: ")).unwrap().split(' ').next().unwrap().to_owned();
    let mut server = Process::serve(folder.path(), &[]);
    server.ready().await;
    let login =
        |password: &str| server.admin.post("/auth/login", json!({"email": "ops@example.com", "password": password}));
    let opened = login(&password).ok().await;
    assert_eq!(opened["role"], "super_admin");
    let reset = said(&run(folder.path(), &["admin", "reset-password", "--email", "OPS@example.com"], &[]));
    let fresh = reset.lines().find_map(|l| l.strip_prefix("password: ")).unwrap().split(' ').next().unwrap().to_owned();
    server.admin.get("/auth/me").token(opened["token"].as_str().unwrap()).refused("4010").await;
    login(&password).refused("4011").await;
    login(&fresh).ok().await;
    refuses(folder.path(), &["admin", "reset-password", "--email", "nobody@example.com"], &[], &["nobody@example.com"]);
    refuses(folder.path(), &["admin", "create", "--email", "ops@example.com"], &[], &["exists already"]);
}

#[test]
fn the_documents_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    for side in ["employee", "admin"] {
        let output = run(folder.path(), &["openapi", side], &[]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(document["info"]["title"].as_str().unwrap().starts_with("tidepool"));
    }
}

/// What is simulated is another program (`crates/lab`).
#[test]
fn the_product_holds_no_demo_and_no_benchmark() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["demo", "bench"] {
        let refused = run(folder.path(), &[name], &[]);
        assert!(!refused.status.success(), "{name}");
    }
}

#[test]
fn the_readme_lists_every_setting() {
    let folder = tempfile::tempdir().unwrap();
    let table = said(&run(folder.path(), &["settings"], &[]));
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (_, rest) = readme.split_once("<!-- settings -->").expect("the table's beginning is marked");
    let (shown, _) = rest.split_once("<!-- /settings -->").expect("the table's end is marked");
    assert_eq!(shown.trim(), table.trim(), "put the output of `tidepool settings` between the two marks");
}
