//! Relays WebSockets between an employee's browser and the gateway of the employee's instance: one-time tickets, the
//! way to the instance, and sockets that end with the login or the binding that they were opened by.
//!
//! Nothing is buffered for a socket that drops. After a reconnect the browser asks the gateway for its history, which
//! also shows what is under way.

mod end;
mod guard;
mod handshake;
mod pump;
pub(crate) mod reach;
mod sockets;

use std::sync::Arc;

use base::id::{InstanceId, UserId};
use base::{Error, Kind, Result, Secret};
use futures_util::{Sink, Stream};
use jiff::{SignedDuration, Timestamp};
use openclaw::frame;
use people::holder;
use people::session::{self, Employee, Token};
use queue::throttle::SOCKET;
use remote::assistant::{Message, SocketError};
use store::instance::Instance;
use store::ticket::{self, Ticket};

use crate::App;
pub use end::End;
pub use reach::{Port, reach};
pub use sockets::{Place, Sockets};

/// How long a ticket is valid.
const TICKET: SignedDuration = SignedDuration::from_secs(30);

/// Who opened a socket, by which login, to which instance.
#[derive(Clone, Debug)]
pub struct Visitor {
    pub user: UserId,
    pub token: Token,
    pub instance: InstanceId,
}

/// Issues a ticket for one socket to the employee's own instance; also returns when it expires.
pub async fn ticket(app: &App, who: &Employee, instance: &InstanceId) -> Result<(Secret, Timestamp)> {
    holder::own(app, &who.id, instance).await?;
    app.sockets.check(&who.id)?;
    SOCKET.hit(app, who.id.as_str()).await?;
    let text = base::secret::random_token()?;
    let now = app.clock.now();
    let expires_at = now + TICKET;
    let record = Ticket {
        user_id: who.id.clone(),
        instance_id: instance.clone(),
        jti: who.token.jti.clone(),
        issued_at: who.token.issued_at,
        token_ends: who.token.expires_at.as_second(),
        expires_at,
    };
    ticket::insert(&app.db, &app.sealer.hash(&text), &record, now).await?;
    Ok((text, expires_at))
}

/// Redeems a ticket: returns its visitor and a place among the sockets. A ticket is used up even if it is refused here.
pub async fn admit(app: &App, ticket: &str, instance: &InstanceId) -> Result<(Visitor, Place)> {
    let refused = || Error::from(Kind::Unauthorized).with_operator("no such ticket, or used, or too late");
    let hash = app.sealer.hash(&Secret::new(ticket));
    let taken = ticket::take(&app.db, &hash, app.clock.now()).await?;
    let taken = taken.filter(|t| t.instance_id == *instance).ok_or_else(refused)?;
    let token = Token {
        jti: taken.jti,
        issued_at: taken.issued_at,
        expires_at: Timestamp::from_second(taken.token_ends).map_err(Error::internal)?,
    };
    let visitor = Visitor { user: taken.user_id, token, instance: instance.clone() };
    visitor.still(app).await?;
    let place = app.sockets.enter(&visitor.user)?;
    Ok((visitor, place))
}

impl Visitor {
    /// Returns the instance if the login is still valid and the instance is still the visitor's.
    pub async fn still(&self, app: &App) -> Result<Instance> {
        session::still(app, &self.user, &self.token).await?;
        holder::own(app, &self.user, &self.instance).await
    }

    /// The same; in the mode `Page` the embedded window must also be switched on.
    async fn may_speak(&self, app: &App, mode: RelayMode) -> Result<Instance> {
        let instance = self.still(app).await?;
        if mode == RelayMode::Page {
            require_page(app, &instance)?;
        }
        Ok(instance)
    }
}

/// Refuses if the embedded window is switched off for the instance.
pub(crate) fn require_page(app: &App, instance: &Instance) -> Result<()> {
    match app.embed.enabled && instance.embed_enabled {
        true => Ok(()),
        false => Err(Error::new(Kind::NoAccess, "the embedded window is switched off")),
    }
}

/// The two halves of a browser's socket: the relay reads from one and writes to the other.
pub trait ClientRead: Stream<Item = Result<Message, SocketError>> + Unpin + Send {}
impl<T: Stream<Item = Result<Message, SocketError>> + Unpin + Send> ClientRead for T {}
pub trait ClientWrite: Sink<Message, Error = SocketError> + Unpin + Send {}
impl<T: Sink<Message, Error = SocketError> + Unpin + Send> ClientWrite for T {}

/// What a browser may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayMode {
    /// Requests of the allowed methods, over a connection that the platform opened with the scopes for chat.
    Chat,
    /// Everything: the gateway's own page does its own handshake.
    Page,
}

/// Relays frames between a browser and the instance until one of them disconnects, the visitor loses access, or the
/// process stops.
pub async fn carry(
    app: Arc<App>,
    visitor: Visitor,
    _place: Place,
    mode: RelayMode,
    mut reader: impl ClientRead,
    mut writer: impl ClientWrite,
) {
    let instance = visitor.instance.as_str();
    let talk = async {
        match connect(&app, &visitor, mode).await {
            Ok((gateway, hello)) => pump::run(&mut reader, &mut writer, gateway, hello, mode).await,
            Err(end) => end,
        }
    };
    let end = tokio::select! {
        end = talk => end,
        end = guard::ended(&app, &visitor, mode) => end,
        end = app.sockets.closing() => end,
    };
    tracing::info!(instance, user = visitor.user.as_str(), code = end.code, reason = %end.reason, "socket ended");
    end.tell(&mut reader, &mut writer).await;
}

async fn connect(
    app: &App,
    visitor: &Visitor,
    mode: RelayMode,
) -> Result<(remote::assistant::Socket, Option<String>), End> {
    let instance = visitor.may_speak(app, mode).await.map_err(End::from)?;
    match mode {
        RelayMode::Chat => {
            let (socket, hello) = handshake::connect(app, &instance).await?;
            Ok((socket, Some(hello)))
        }
        RelayMode::Page => {
            let road = reach(app, &instance, Port::Gateway).await.map_err(End::from)?;
            let origin = &app.embed.gateway_origin;
            let socket = remote::assistant::dial(road, Some(origin), frame::MAX_BYTES).await;
            Ok((socket.map_err(End::from)?, None))
        }
    }
}
