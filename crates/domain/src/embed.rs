//! The embedded window: an instance's own page, on an origin of its own, for its owner.
//!
//! The page is an administrator of its gateway, and its scripts keep storage. So it has another origin than our own pages, and
//! its address is a pass: sealed, for an hour, and only as long as the login and the binding it was made by hold.

use base::id::{InstanceId, UserId};
use base::{Error, Kind, Result, Secret};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use store::instance::Instance;
use store::seal::Place;
use url::Url;

use crate::relay::{self, Visitor};
use crate::session::{Employee, Token};
use crate::throttle::SOCKET;
use crate::{App, claim};

/// How long an address leads in. What was opened by then stays open.
const PASS: SignedDuration = SignedDuration::from_hours(1);

const PLACE: Place<'_> = Place { table: "embed", column: "pass", id: "" };

/// Where the windows are.
#[derive(Clone, Debug)]
pub struct Embed {
    pub enabled: bool,
    /// The window's own address, as browsers see it.
    pub url: String,
    /// The origin of the page that may frame it.
    pub framed_by: String,
}

impl Embed {
    /// The origin of the window, which gateways are told to allow.
    pub fn origin(&self) -> String {
        origin(&self.url)
    }
}

/// Scheme, host and port of an address.
pub fn origin(url: &str) -> String {
    Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
}

#[derive(Serialize, Deserialize)]
struct Pass {
    user: String,
    instance: String,
    jti: String,
    iat: i64,
    exp: i64,
    until: i64,
}

/// The address of an own instance's page. Behind the `#`, which no server sees, stands the gateway's token: its owner has it
/// anyway, and the page takes it out of the address at once.
pub async fn ticket(app: &App, who: &Employee, id: &InstanceId) -> Result<Secret> {
    let instance = claim::own(app, &who.id, id).await?;
    offered(app, &instance)?;
    let pass = Pass {
        user: who.id.as_str().to_owned(),
        instance: id.as_str().to_owned(),
        jti: who.token.jti.clone(),
        iat: who.token.issued_at,
        exp: who.token.expires_at.as_second(),
        until: (app.clock.now() + PASS).as_second(),
    };
    let text = Secret::new(serde_json::to_string(&pass).map_err(Error::internal)?);
    let sealed = app.sealer.seal(PLACE, &text)?.replace('+', "-").replace('/', "_");
    let token = instance.token(&app.sealer)?;
    Ok(Secret::new(format!("{}/e/{sealed}/chat/main#token={}", app.embed.url.trim_end_matches('/'), token.expose())))
}

/// Who comes by an address, and to which instance. Looked at anew with every request.
pub async fn admit(app: &App, segment: &str) -> Result<(Visitor, Instance)> {
    let refused = |why: &str| Error::from(Kind::Unauthorized).with_operator(why);
    let sealed = segment.replace('-', "+").replace('_', "/");
    let text = app.sealer.open(PLACE, &sealed).map_err(|_| refused("not a pass of ours"))?;
    let pass: Pass = serde_json::from_str(text.expose()).map_err(|_| refused("not a pass of ours"))?;
    if pass.until <= app.clock.now().as_second() {
        return Err(refused("the pass has expired"));
    }
    let expires_at = Timestamp::from_second(pass.exp).map_err(Error::internal)?;
    let visitor = Visitor {
        user: UserId::named(pass.user),
        token: Token { jti: pass.jti, issued_at: pass.iat, expires_at },
        instance: InstanceId::named(pass.instance),
    };
    let instance = visitor.still(app).await?;
    offered(app, &instance)?;
    Ok((visitor, instance))
}

/// A place for the page's own socket. It comes by no ticket, so it is counted here.
pub async fn enter(app: &App, visitor: &Visitor) -> Result<relay::Place> {
    app.sockets.check(&visitor.user)?;
    SOCKET.hit(app, visitor.user.as_str()).await?;
    app.sockets.enter(&visitor.user)
}

pub(crate) fn offered(app: &App, instance: &Instance) -> Result<()> {
    match app.embed.enabled && instance.embed_enabled {
        true => Ok(()),
        false => Err(Error::new(Kind::NoAccess, "the embedded window is switched off")),
    }
}
