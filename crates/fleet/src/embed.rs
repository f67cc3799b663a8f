//! The embedded window: shows an instance's own page to its holder, on a separate origin.
//!
//! The page administers its gateway, and its scripts store data in the browser. So its origin differs from that of our
//! own pages and from that of other instances' pages: each instance has a label below the windows' host. The page's
//! address contains a pass. A pass is sealed, is valid for an hour, and ends earlier with the login or the binding that
//! it was issued for. If there is only one host, all instances share its origin, and the browser clears its storage
//! when another instance is shown there.

use base::id::{InstanceId, UserId};
use base::{Error, Kind, Result, Secret, password};
use jiff::{SignedDuration, Timestamp};
use people::holder;
use people::session::{Employee, Token};
use queue::throttle::SOCKET;
use serde::{Deserialize, Serialize};
use store::instance::Instance;
use store::seal::Place;
use url::Url;

use crate::App;
use crate::relay::{self, Visitor};

/// How long a pass is valid. A socket that is open by then stays open.
const PASS: SignedDuration = SignedDuration::from_hours(1);

const PLACE: Place<'_> = Place { table: "embed", column: "pass", id: "" };

const STORAGE: Place<'_> = Place { table: "embed", column: "storage", id: "" };

/// How many origins the windows have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origins {
    /// Each instance has a label of its own below the window's host.
    PerInstance,
    /// All instances are shown at the window's host itself.
    Shared,
}

/// The settings of the windows.
#[derive(Clone, Debug)]
pub struct Embed {
    pub enabled: bool,
    /// The windows' address as browsers see it, without a label.
    pub url: String,
    pub origins: Origins,
    /// The origin that gateways are configured to allow, and that the platform sends to them for every window. It does
    /// not depend on `origins`: otherwise a change of that setting would require a new configuration of every instance.
    pub gateway_origin: String,
    /// The origin of the page that may frame it.
    pub framed_by: String,
}

impl Embed {
    /// For a process that shows no windows.
    pub fn disabled() -> Embed {
        Embed {
            enabled: false,
            url: String::new(),
            origins: Origins::Shared,
            gateway_origin: String::new(),
            framed_by: String::new(),
        }
    }

    /// The host name of an instance's window; `None` if all windows share one host.
    pub fn host_of(&self, id: &InstanceId) -> Option<String> {
        match self.origins {
            Origins::Shared => None,
            Origins::PerInstance => Some(format!("{}.{}", label(id), self.host()?)),
        }
    }

    /// The windows' host name, without a label.
    pub fn host(&self) -> Option<String> {
        Url::parse(&self.url).ok()?.host_str().map(str::to_owned)
    }

    /// The address of an instance's window, without a slash at its end.
    pub fn url_of(&self, id: &InstanceId) -> String {
        self.at(self.origins, &label(id)).unwrap_or_default()
    }

    /// Scheme, host and port of an instance's window.
    pub fn origin_of(&self, id: &InstanceId) -> String {
        Url::parse(&self.url_of(id)).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
    }

    /// All windows, as a Content-Security-Policy names them.
    pub fn frame_source(&self) -> String {
        let mut base = self.clone();
        base.url = Url::parse(&self.url).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        base.at(self.origins, "*").unwrap_or_default()
    }

    fn at(&self, origins: Origins, label: &str) -> Option<String> {
        let url = self.url.trim_end_matches('/');
        let (scheme, rest) = url.split_once("://")?;
        Some(match origins {
            Origins::Shared => url.to_owned(),
            Origins::PerInstance => format!("{scheme}://{label}.{rest}"),
        })
    }
}

/// Prefix of the labels of ids that are not valid labels themselves. An id that begins with this prefix is hashed too,
/// so that no two instances have the same label.
const HASHED: &str = "x-";
/// The maximum length of a DNS label.
const LONGEST_LABEL: usize = 63;

/// An instance's label below the windows' host: its id, or a hash of the id if that is not a valid label. Ids are
/// unique without regard to case, as host names are.
pub fn label(id: &InstanceId) -> String {
    let key = id.key();
    let letters = key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    // Labels with "--" as third and fourth characters are reserved for encoded names.
    let is_label = letters
        && (1..=LONGEST_LABEL).contains(&key.len())
        && !key.starts_with('-')
        && !key.ends_with('-')
        && key.get(2..4) != Some("--")
        && !key.starts_with(HASHED);
    match is_label {
        true => key,
        false => format!("{HASHED}{:.40}", password::sha256_hex(&key)),
    }
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

/// The address of the page of the employee's own instance. It carries the gateway's token in the fragment (after `#`),
/// which browsers do not send to servers. The holder has access to the token anyway, and the page removes it from the
/// address at once.
pub async fn ticket(app: &App, who: &Employee, id: &InstanceId) -> Result<Secret> {
    let instance = holder::own(app, &who.id, id).await?;
    relay::require_page(app, &instance)?;
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
    Ok(Secret::new(format!("{}/e/{sealed}/chat/main#token={}", app.embed.url_of(id), token.expose())))
}

/// Returns the visitor and the instance of a pass. Pass, login and binding are checked with every request.
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
    relay::require_page(app, &instance)?;
    Ok((visitor, instance))
}

/// Whose storage a browser keeps at the windows' shared origin.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
struct StorageOwner {
    user: String,
    instance: String,
}

impl StorageOwner {
    fn of(visitor: &Visitor) -> StorageOwner {
        StorageOwner { user: visitor.user.as_str().to_owned(), instance: visitor.instance.key() }
    }
}

/// The value of a cookie that says whose storage the browser keeps. It is sealed: otherwise a page could forge one for
/// another instance, and its own storage would not be cleared when that instance is shown.
pub fn storage_mark(app: &App, visitor: &Visitor) -> Result<String> {
    let owner = serde_json::to_string(&StorageOwner::of(visitor)).map_err(Error::internal)?;
    Ok(app.sealer.seal(STORAGE, &Secret::new(owner))?)
}

/// Whether a mark names this visitor and instance.
pub fn is_storage_of(app: &App, visitor: &Visitor, mark: &str) -> bool {
    let opened = app.sealer.open(STORAGE, mark).ok();
    let owner = opened.and_then(|text| serde_json::from_str::<StorageOwner>(text.expose()).ok());
    owner.is_some_and(|owner| owner == StorageOwner::of(visitor))
}

/// Reserves a place for the page's own socket. Such a socket has no ticket, so the rate limit is applied here.
pub async fn enter(app: &App, visitor: &Visitor) -> Result<relay::Place> {
    app.sockets.check(&visitor.user)?;
    SOCKET.hit(app, visitor.user.as_str()).await?;
    app.sockets.enter(&visitor.user)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embed(url: &str, origins: Origins) -> Embed {
        Embed { enabled: true, url: url.into(), origins, ..Embed::disabled() }
    }

    #[test]
    fn every_instance_has_a_label_of_its_own_that_is_one() {
        for plain in ["a0", "fra-07", "9", &"a".repeat(63)] {
            assert_eq!(label(&InstanceId::named(plain)), plain);
        }
        assert_eq!(label(&InstanceId::named("Fra-07")), "fra-07", "ids are unique without regard to case");
        let long = "a".repeat(64);
        let odd = ["a.b", "a_b", "_a", "a-", "ab--c", "xn--a", "x-a", &long, "ä", "", "a0.", "*", "a/b"];
        let mut labels: Vec<String> = odd.iter().map(|id| label(&InstanceId::named(*id))).collect();
        for label in &labels {
            assert!(label.len() == 42 && label.starts_with(HASHED), "{label}");
            assert!(label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{label}");
        }
        // An id that looks like the hash of another id is hashed too.
        let imitated = labels[0].clone();
        labels.push(label(&InstanceId::named(imitated)));
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), odd.len() + 1);
    }

    #[test]
    fn a_label_stands_in_front_of_the_host() {
        let id = InstanceId::named("A0");
        let own = embed("https://window.example.com:8443/w/", Origins::PerInstance);
        assert_eq!(own.url_of(&id), "https://a0.window.example.com:8443/w");
        assert_eq!(own.origin_of(&id), "https://a0.window.example.com:8443");
        assert_eq!(own.host_of(&id).as_deref(), Some("a0.window.example.com"));
        assert_eq!(own.frame_source(), "https://*.window.example.com:8443");
        let shared = embed("https://window.example.com/w", Origins::Shared);
        assert_eq!(shared.url_of(&id), "https://window.example.com/w");
        assert_eq!(shared.frame_source(), "https://window.example.com");
        assert_eq!(shared.host_of(&id), None);
    }
}
