//! The machine itself, by the same verbs.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use remote::host::file::{Expect, Hash, Write, Written};
use remote::host::{Actor, Command, Error, Host, metrics};
use testkit::{until, until_ok};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::kit::{NEVER, sh};

fn own(command: Command) -> Command {
    command.by(Actor::Login)
}

#[tokio::test]
async fn commands_run_with_their_words_input_and_status() {
    let host = Host::local();
    let words = ["$(id)", "a'b", "\\", "", "x\ny"];
    let output = host.run(&own(Command::new("printf").arg(r"%s\0").args(words))).await.unwrap();
    assert_eq!(output.stdout, words.map(|word| format!("{word}\0")).concat().as_bytes());
    let output = host.run(&own(sh("cat; echo oops >&2; exit 3").stdin("in"))).await.unwrap();
    assert_eq!((output.status, output.text().as_str(), output.stderr.as_slice()), (3, "in", b"oops\n".as_slice()));
    let output = host.run(&own(sh("yes").limit(Duration::from_secs(1)).keep(100))).await;
    assert!(matches!(output, Err(Error::CommandTimedOut { .. })), "{output:?}");
    let output = host.run(&own(Command::new("true").stdin(vec![0; 4 << 20]))).await.unwrap();
    assert!(output.succeeded());
}

#[tokio::test]
async fn a_shells_own_message_begins_with_the_scripts_name() {
    let script = Command::script("look-around", &["a=b\n", "no-such-program \"$a\""]);
    let output = Host::local().run(&own(script)).await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status == 127 && said.starts_with("look-around: "), "{said}");
    let long = Command::long_script("look-around", "echo $#");
    assert_eq!(Host::local().run(&own(long)).await.unwrap().text(), "1\n");
}

#[tokio::test]
async fn what_nobody_waits_for_ends() {
    let host = Host::local();
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("pid");
    // It does not end by itself.
    let command = own(sh(r#"echo $$ >"$1"; exec sleep 1000"#).arg(mark.to_str().unwrap())).limit(NEVER);
    let begun = until_ok("it has said who it is", async || {
        let said = std::fs::read_to_string(&mark).unwrap_or_default();
        if said.ends_with('\n') { Ok(said.trim().to_owned()) } else { Err(said) }
    });
    let pid = tokio::select! {
        pid = begun => pid,
        outcome = host.run(&command) => panic!("it ended by itself: {outcome:?}"),
    };
    until("it has ended", async || !std::path::Path::new("/proc").join(&pid).exists()).await;
}

#[tokio::test]
async fn a_command_that_leaves_something_running_is_not_waited_for() {
    let output = Host::local().run(&own(sh("sleep 1000 & echo $!"))).await.unwrap();
    let pid = output.text().trim().to_owned();
    assert!(std::path::Path::new("/proc").join(&pid).exists(), "{pid}");
    Host::local().succeed(&own(Command::new("kill").arg(&pid))).await.unwrap();
}

#[tokio::test]
async fn files_are_written_whole_with_versions_and_never_against_a_change() {
    let host = Host::local();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b.json");
    let name = path.to_str().unwrap();
    let write = |text: &str, expect: Expect| Write::new(name, text, expect).by(Actor::Login);
    assert_eq!(host.read(name, 100, Actor::Login).await.unwrap(), None);
    assert_eq!(host.write(&write("one", Expect::Absent)).await.unwrap(), Written::New);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(host.write(&write("one", Expect::Any)).await.unwrap(), Written::Same);
    for number in 0..7 {
        let now = host.read(name, 100, Actor::Login).await.unwrap().unwrap();
        let written = host.write(&write(&number.to_string(), Expect::Unchanged(Hash::of(&now)))).await.unwrap();
        assert!(matches!(written, Written::Replaced { .. }));
    }
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 6);
    let stale = host.write(&write("x", Expect::Unchanged(Hash::of(b"one")))).await.unwrap_err();
    assert_eq!(stale, Error::ChangedMeanwhile { path: name.to_owned() });
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "6");
}

#[tokio::test]
async fn sockets_lines_and_metrics_are_to_be_had() {
    let host = Host::local();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let byte = stream.read_u8().await.unwrap();
        stream.write_u8(byte + 1).await.unwrap();
    });
    let mut socket = host.tunnel(port).await.unwrap();
    socket.write_u8(1).await.unwrap();
    assert_eq!(socket.read_u8().await.unwrap(), 2);

    let mut lines = host.lines(&own(sh("echo a; echo b; exec cat >/dev/null"))).await.unwrap();
    assert_eq!(lines.next().await.unwrap().unwrap(), b"a");
    assert_eq!(lines.next().await.unwrap().unwrap(), b"b");
    let mut failed = host.lines(&own(sh("exit 4"))).await.unwrap();
    assert!(matches!(failed.next().await, Err(Error::Failed { status: 4, .. })));

    assert!(metrics::collect(&host).await.unwrap().memory_total > 0);
    assert_eq!(host.contact().await.unwrap(), None);
}
