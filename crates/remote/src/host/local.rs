//! The machine that the platform itself runs on. Commands run as on every other server: with the same line and the same
//! time limit.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command as Process};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::command::{Command, KILL_AFTER, Login};
use super::error::{Error, Result};
use super::lines::{Feed, Lines};
use super::output::{Bounded, Output};

const SLACK: Duration = Duration::from_secs(3);
/// How long to wait for output after a command has ended: a process that it left running may hold the output open.
const LINGER: Duration = Duration::from_secs(1);
const COMPLAINTS_KEPT: usize = 64 * 1024;

pub(super) fn login() -> Login {
    let is_root = geteuid().is_root();
    let user = if is_root { "root".to_owned() } else { std::env::var("USER").unwrap_or_default() };
    Login { user, is_root }
}

fn spawn(line: &str, command: &Command) -> Result<Child> {
    Process::new("sh")
        .arg("-c")
        .arg(line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| Error::Failed { command: command.name().to_owned(), status: 127, why: e.to_string() })
}

/// Sends SIGTERM. `timeout` passes the signal on to the command, unless it has just forked and does not know its child yet:
/// then it exits alone. So the group that it leads gets the signal too.
fn ask_to_end(child: &Child) {
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(id as i32)) {
        kill_process(pid, Signal::TERM).ok();
        kill_process_group(pid, Signal::TERM).ok();
    }
}

/// Runs a command to its end. If the caller goes away, the command is ended.
pub(super) async fn run(line: String, command: &Command) -> Result<Output> {
    let mut child = spawn(&line, command)?;
    let (mut answer, wait) = oneshot::channel();
    let (limit, keep, stdin) = (command.limit, command.keep, command.stdin.clone());
    tokio::spawn(async move {
        let began = Instant::now();
        let last = began + limit + KILL_AFTER + SLACK;
        let (input, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // A separate task, so that a command that does not read its input does not block us.
        let feeding = tokio::spawn(async move {
            if let Some(mut input) = input {
                input.write_all(&stdin).await.ok();
            }
        });
        let (mut out, mut err) = (Bounded::new(keep), Bounded::new(COMPLAINTS_KEPT));
        let ended = {
            let reading = async { tokio::join!(drain(stdout, &mut out), drain(stderr, &mut err)) };
            tokio::pin!(reading);
            let mut read = false;
            loop {
                tokio::select! {
                    status = child.wait() => {
                        if !read {
                            timeout(LINGER, &mut reading).await.ok();
                        }
                        break status.ok();
                    }
                    _ = &mut reading, if !read => read = true,
                    () = answer.closed() => {
                        ask_to_end(&child);
                        break timeout_at(last, child.wait()).await.ok().and_then(Result::ok);
                    }
                    () = tokio::time::sleep_until(last) => break None,
                }
            }
        };
        feeding.abort();
        let truncated = out.truncated || err.truncated;
        let output = ended.map(|status| Output {
            status: status_of(status),
            truncated,
            stdout: out.finish(),
            stderr: err.finish(),
            took: began.elapsed(),
        });
        answer.send(output).ok();
    });
    match wait.await {
        Ok(Some(output)) => Ok(output),
        Ok(None) => Err(command.too_late()),
        Err(_) => Err(command.cut_off()),
    }
}

/// Starts a command whose output is read line by line.
pub(super) fn feed(line: &str, command: &Command, login: &Login) -> Result<Lines> {
    let mut child = spawn(line, command)?;
    let (mut feed, lines) = Feed::new();
    let (command, login) = (command.clone(), login.clone());
    tokio::spawn(async move {
        let began = Instant::now();
        // Keep the input open: such a command ends when its input ends.
        let input = child.stdin.take();
        let mut complaints = Bounded::new(COMPLAINTS_KEPT);
        let (mut stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut buffer = vec![0; 16 * 1024];
        let complaining = drain(stderr, &mut complaints);
        let reading = async {
            let Some(stdout) = stdout.as_mut() else { return true };
            loop {
                tokio::select! {
                    read = stdout.read(&mut buffer) => match read {
                        Ok(size @ 1..) => feed.take(&buffer[..size]),
                        _ => return true,
                    },
                    () = feed.abandoned() => return false,
                }
            }
        };
        let ended = tokio::select! {
            ended = reading => ended,
            () = async { complaining.await; std::future::pending().await } => false,
        };
        if !ended {
            drop(input);
            ask_to_end(&child);
        }
        let status = child.wait().await;
        if ended {
            let took = began.elapsed();
            let output =
                |status| Output { status: status_of(status), stderr: complaints.finish(), took, ..Output::default() };
            let output = status.map(output).map_err(|_| command.cut_off());
            let judged = output.and_then(|output| command.judged(&login, output)?.ok(command.name()));
            feed.end(judged.map(drop)).await;
        }
    });
    Ok(lines)
}

async fn drain(from: Option<impl AsyncRead + Unpin>, into: &mut Bounded) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(size @ 1..) = from.read(&mut buffer).await {
        into.take(&buffer[..size]);
    }
}

fn status_of(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255)
}
