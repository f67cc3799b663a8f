//! The SSH server in front of machines: login, commands, and forwarded connections to a machine's loopback.

use std::sync::Arc;

use russh::server::{Auth, ChannelOpenHandle, Handler, Msg, Session, VerifiedPublicKey};
use russh::{Channel, ChannelMsg, ChannelOpenFailure, ChannelReadHalf, ChannelWriteHalf};

use super::command::{self, Answer};
use super::machine::{Machine, Obstacle, Power};
use super::words::Invocation;

/// Marks the beginning of a command's own output.
const MARK: &[u8] = b"\x02tidepool\x03";
/// Limit of a command's input; no real one is as long.
const LONGEST: usize = 64 << 20;

/// Finds the machine by the user who logs in: one address serves many machines.
pub type Lookup = Arc<dyn Fn(&str) -> Option<Arc<Machine>> + Send + Sync>;

/// One connection.
pub(super) struct Connection {
    pub lookup: Lookup,
    pub machine: Option<Arc<Machine>>,
    pub user: String,
}

impl Connection {
    fn machine(&self) -> Result<Arc<Machine>, russh::Error> {
        let machine = self.machine.clone().ok_or(russh::Error::Inconsistent)?;
        if *machine.power.borrow() == Power::Down { Err(russh::Error::Disconnect) } else { Ok(machine) }
    }
}

/// Waits until a machine is down.
async fn until_down(machine: &Machine) {
    machine.power.subscribe().wait_for(|power| *power == Power::Down).await.ok();
}

/// Waits until a machine no longer hangs.
async fn until_awake(machine: &Machine) {
    machine.power.subscribe().wait_for(|power| *power != Power::Hung).await.ok();
}

impl Handler for Connection {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, user: &str, _: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        let Some(machine) = (self.lookup)(user) else { return Ok(Auth::reject()) };
        until_awake(&machine).await;
        (self.machine, self.user) = (Some(machine), user.to_owned());
        self.machine()?;
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        let (machine, user) = (self.machine()?, self.user.clone());
        tokio::spawn(async move {
            until_awake(&machine).await;
            reply.accept().await;
            let (read, write) = channel.split();
            tokio::select! {
                () = session(&machine, &user, read, &write) => {}
                () = until_down(&machine) => {}
            }
            write.close().await.ok();
        });
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        _: &str,
        port: u32,
        _: &str,
        _: u32,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        let machine = self.machine()?;
        tokio::spawn(async move {
            until_awake(&machine).await;
            let listener = u16::try_from(port).ok().and_then(|port| machine.listener(port));
            let Some(listener) = listener else { return reply.reject(ChannelOpenFailure::ConnectFailed).await };
            reply.accept().await;
            listener.serve(channel.into_stream()).await;
        });
        Ok(())
    }
}

/// Reads one command and its input, runs it, and sends the answer.
async fn session(machine: &Arc<Machine>, user: &str, mut read: ChannelReadHalf, write: &ChannelWriteHalf<Msg>) {
    let line = loop {
        match read.wait().await {
            Some(ChannelMsg::Exec { command, .. }) => break command,
            Some(ChannelMsg::Close) | None => return,
            Some(_) => {}
        }
    };
    let invocation = Invocation::read(&String::from_utf8_lossy(&line), user);
    if let Some(unit) = invocation.as_ref().and_then(command::followed) {
        return follow(machine, unit, read, write).await;
    }
    let mut stdin = vec![];
    loop {
        match read.wait().await {
            Some(ChannelMsg::Data { data }) if stdin.len() < LONGEST => stdin.extend_from_slice(&data),
            Some(ChannelMsg::Eof) => break,
            Some(ChannelMsg::Close | ChannelMsg::Signal { .. }) | None => return,
            Some(_) => {}
        }
    }
    until_awake(machine).await;
    let obstacle = match &invocation {
        Some(invocation) => machine.obstacle(&invocation.argv).await,
        None => Obstacle::None,
    };
    match obstacle {
        Obstacle::None => {}
        Obstacle::Held(_) => return,
        Obstacle::Refused(_, why) => return say(write, Answer::failed(1, &why)).await,
    }
    let answer = match &invocation {
        Some(invocation) => command::run(machine, invocation, &stdin).await,
        None => Answer::failed(127, "sh: this is no line of the platform's"),
    };
    machine.news.notify_waiters();
    until_awake(machine).await;
    say(write, answer).await;
}

async fn say(write: &ChannelWriteHalf<Msg>, answer: Answer) {
    write.data_bytes([MARK, &answer.stdout].concat()).await.ok();
    write.extended_data_bytes(1, [MARK, &answer.stderr].concat()).await.ok();
    write.exit_status(answer.status).await.ok();
    write.eof().await.ok();
}

/// Sends the entries of a unit's journal as they are written, until the client closes the channel.
async fn follow(
    machine: &Arc<Machine>,
    (unit, mut from): (String, Option<u64>),
    mut read: ChannelReadHalf,
    write: &ChannelWriteHalf<Msg>,
) {
    write.data_bytes(MARK).await.ok();
    let gone = async { while !matches!(read.wait().await, Some(ChannelMsg::Eof | ChannelMsg::Close) | None) {} };
    let stopping = async {
        loop {
            let mut news = std::pin::pin!(machine.news.notified());
            news.as_mut().enable();
            let (lines, last) = command::entries_after(&machine.lock(), &unit, from);
            from = Some(last);
            if !lines.is_empty() && write.data_bytes(lines.into_bytes()).await.is_err() {
                return;
            }
            news.await;
        }
    };
    tokio::select! {
        () = gone => {}
        () = stopping => {}
    }
    write.exit_status(0).await.ok();
    write.eof().await.ok();
}
