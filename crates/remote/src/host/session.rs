//! One command on one channel of an SSH connection.
//!
//! Each command has its own task, so that a caller that goes away leaves nothing behind. sshd counts a session until
//! its process has ended, so the task waits for that before it releases its permit.

use std::sync::Arc;
use std::time::Duration;

use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::command::{Command, KILL_AFTER, Login};
use super::error::Error;
use super::lines::{Feed, Lines};
use super::output::{Bounded, Output};
use super::ssh::Connection;

/// How long to wait for output after a command has ended: a process that it left running may hold the output open.
const LINGER: Duration = Duration::from_secs(1);
const COMPLAINTS_KEPT: usize = 64 * 1024;

/// Why a command has no output.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server has reached its limit of sessions. The command was not sent.
    Full,
    /// The connection is unusable. The command was not sent.
    Lost,
    Failed(Error),
}

/// Runs a command to its end.
pub(super) async fn run(
    connection: Arc<Connection>,
    permit: OwnedSemaphorePermit,
    line: String,
    command: &Command,
) -> Result<Output, Fault> {
    let (mut answer, wait) = oneshot::channel();
    let job = Job { line, command: command.clone(), slack: connection.timing.slack };
    tokio::spawn(async move {
        let outcome = job.run(&connection, &mut answer).await;
        drop(permit);
        answer.send(outcome).ok();
    });
    wait.await.unwrap_or_else(|_| Err(Fault::Failed(command.cut_off())))
}

/// Starts a command whose output is read line by line, as long as the reader exists.
pub(super) async fn feed(
    connection: Arc<Connection>,
    permit: OwnedSemaphorePermit,
    line: String,
    command: &Command,
    login: &Login,
) -> Result<Lines, Fault> {
    let (started, wait) = oneshot::channel();
    let (mut feed, lines) = Feed::new();
    let job = Job { line, command: command.clone(), slack: connection.timing.slack };
    let login = login.clone();
    tokio::spawn(async move {
        let (read, write) = match job.begin(&connection, || started.is_closed()).await {
            Ok(halves) => halves,
            Err(fault) => return drop(started.send(Err(fault))),
        };
        started.send(Ok(())).ok();
        let end = job.feed(read, write, &mut feed).await;
        drop(permit);
        if let Some(end) = end {
            let judged = end.and_then(|output| job.command.judged(&login, output)?.ok(job.command.name()));
            feed.end(judged.map(drop)).await;
        }
    });
    wait.await.unwrap_or(Err(Fault::Lost)).map(|()| lines)
}

struct Job {
    line: String,
    command: Command,
    slack: Duration,
}

/// The exit status for a signal: 128 plus its number, or 255 if the number is unknown.
fn status_of(signal: &Sig) -> i32 {
    let number = match signal {
        Sig::HUP => 1,
        Sig::INT => 2,
        Sig::QUIT => 3,
        Sig::ILL => 4,
        Sig::ABRT => 6,
        Sig::FPE => 8,
        Sig::KILL => 9,
        Sig::USR1 => 10,
        Sig::SEGV => 11,
        Sig::PIPE => 13,
        Sig::ALRM => 14,
        Sig::TERM => 15,
        Sig::Custom(_) => 127,
    };
    128 + number
}

impl Job {
    async fn open(&self, connection: &Connection) -> Result<Channel<Msg>, Fault> {
        match timeout(connection.timing.open, connection.handle.channel_open_session()).await {
            Ok(Ok(channel)) => {
                connection.count_channel();
                Ok(channel)
            }
            Ok(Err(russh::Error::ChannelOpenFailure(_))) => Err(Fault::Full),
            Ok(Err(_)) => Err(Fault::Lost),
            Err(_) => {
                connection.retire();
                Err(Fault::Lost)
            }
        }
    }

    async fn begin(
        &self,
        connection: &Connection,
        is_left: impl Fn() -> bool,
    ) -> Result<(ChannelReadHalf, ChannelWriteHalf<Msg>), Fault> {
        let (read, write) = self.open(connection).await?.split();
        if is_left() {
            write.close().await.ok();
            return Err(Fault::Lost);
        }
        // From here on the command may have run.
        if write.exec(true, self.line.as_bytes()).await.is_err() {
            return Err(Fault::Failed(self.command.cut_off()));
        }
        Ok((read, write))
    }

    async fn run(
        &self,
        connection: &Connection,
        caller: &mut oneshot::Sender<Result<Output, Fault>>,
    ) -> Result<Output, Fault> {
        let (mut read, write) = self.begin(connection, || caller.is_closed()).await?;
        let began = Instant::now();
        let outcome = {
            let writing = async {
                write.data_bytes(self.command.stdin.clone()).await.ok();
                write.eof().await.ok();
                // Do not end here: a command need not read all of its input.
                std::future::pending::<()>().await
            };
            tokio::select! {
                outcome = self.listen(&mut read, began) => Some(outcome),
                () = writing => None,
                () = caller.closed() => None,
            }
        };
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => {
                // The caller is gone. Ask the command to end (sshd does that for users, not for root), and wait until
                // it has.
                write.signal(Sig::TERM).await.ok();
                self.listen(&mut read, began).await
            }
        };
        write.close().await.ok();
        if matches!(outcome, Err(Error::CommandTimedOut { .. })) {
            // The server would have ended the command long ago if it still heard us.
            connection.retire();
        }
        outcome.map_err(Fault::Failed)
    }

    /// Reads the command's output until it ends, or until the server must have ended it.
    async fn listen(&self, read: &mut ChannelReadHalf, began: Instant) -> Result<Output, Error> {
        let last = began + self.command.limit + KILL_AFTER + self.slack;
        let (mut out, mut err) = (Bounded::new(self.command.keep), Bounded::new(COMPLAINTS_KEPT));
        let mut status = None;
        let mut until = last;
        loop {
            let message = tokio::select! {
                message = read.wait() => message,
                () = sleep_until(until) => break,
            };
            match message {
                Some(ChannelMsg::Data { data }) => out.take(&data),
                Some(ChannelMsg::ExtendedData { data, .. }) => err.take(&data),
                Some(ChannelMsg::ExitStatus { exit_status }) => status = Some(exit_status as i32),
                Some(ChannelMsg::ExitSignal { signal_name, .. }) => status = Some(status_of(&signal_name)),
                Some(ChannelMsg::Failure) => return Err(Error::odd("sshd", "it refuses to run commands")),
                Some(ChannelMsg::Close) | None => break,
                Some(_) => {}
            }
            if status.is_some() {
                until = last.min(Instant::now() + LINGER);
            }
        }
        match status {
            Some(status) => Ok(Output {
                status,
                truncated: out.truncated || err.truncated,
                stdout: out.finish(),
                stderr: err.finish(),
                took: began.elapsed(),
            }),
            None if Instant::now() >= last => Err(self.command.too_late()),
            None => Err(self.command.cut_off()),
        }
    }

    /// Passes lines on as they arrive. Returns how the command ended, or `None` if the reader is gone. The channel is
    /// always drained: a reader that falls behind loses lines, and never blocks the connection.
    async fn feed(
        &self,
        mut read: ChannelReadHalf,
        write: ChannelWriteHalf<Msg>,
        feed: &mut Feed,
    ) -> Option<Result<Output, Error>> {
        let began = Instant::now();
        let last = began + self.command.limit + KILL_AFTER + self.slack;
        let mut complaints = Bounded::new(COMPLAINTS_KEPT);
        let mut status = None;
        let end = loop {
            let message = tokio::select! {
                message = read.wait() => message,
                () = feed.abandoned() => break None,
                () = sleep_until(last) => break Some(Err(self.command.too_late())),
            };
            match message {
                Some(ChannelMsg::Data { data }) => feed.take(&data),
                Some(ChannelMsg::ExtendedData { data, .. }) => complaints.take(&data),
                Some(ChannelMsg::ExitStatus { exit_status }) => status = Some(exit_status as i32),
                Some(ChannelMsg::ExitSignal { signal_name, .. }) => status = Some(status_of(&signal_name)),
                Some(ChannelMsg::Close) | None => {
                    let took = began.elapsed();
                    let output = |status| Output { status, stderr: complaints.finish(), took, ..Output::default() };
                    break Some(status.map(output).ok_or_else(|| self.command.cut_off()));
                }
                Some(_) => {}
            }
        };
        if end.is_none() {
            // The command ends when its input ends; sshd counts its session until then.
            write.eof().await.ok();
            write.signal(Sig::TERM).await.ok();
            let gone = async { while !matches!(read.wait().await, Some(ChannelMsg::Close) | None) {} };
            timeout(KILL_AFTER + self.slack, gone).await.ok();
        }
        write.close().await.ok();
        end
    }
}
