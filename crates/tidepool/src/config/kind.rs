//! The kinds of values that settings have, and how each is checked.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr as _;

use api::PublicUrl;
use base::{Email, Secret, Zone, password};
use ipnet::IpNet;
use store::seal::Sealer;
use url::Url;

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    Secret,
    Password,
    TokenKey,
    MasterKey,
    Email,
    Address,
    DatabaseUrl,
    LogUrl,
    HttpUrl,
    PublicUrl,
    WindowUrl,
    Zone,
    Bool,
    Number(i64, i64),
    OneOf(&'static [&'static str]),
    SomeOf(&'static [&'static str]),
    Domains,
    /// A name and a value.
    Claim,
    Networks,
    LogFilter,
}

impl Kind {
    /// Values of these kinds are never printed.
    pub fn is_secret(self) -> bool {
        // A database's address may carry a password.
        matches!(
            self,
            Kind::Secret | Kind::Password | Kind::TokenKey | Kind::MasterKey | Kind::DatabaseUrl | Kind::LogUrl
        )
    }

    /// What is wrong with the value, if anything.
    pub fn check(self, value: &str) -> Result<(), String> {
        let problem = |bad: bool, text: &str| if bad { Err(text.to_owned()) } else { Ok(()) };
        match self {
            Kind::Text | Kind::Secret => problem(value.trim().is_empty(), "must not be empty"),
            Kind::Password => password::check("password", &Secret::new(value)).map_err(|e| e.client.into_owned()),
            Kind::TokenKey => problem(value.len() < 32, "must have at least 32 characters"),
            Kind::MasterKey => problem(Sealer::new(&Secret::new(value)).is_err(), "must be 32 bytes in base64"),
            Kind::Email => problem(value.parse::<Email>().is_err(), "is not an e-mail address"),
            Kind::Address => problem(value.parse::<SocketAddr>().is_err(), "is not an address with a port"),
            Kind::DatabaseUrl => {
                let postgres = ["postgres://", "postgresql://"].iter().any(|p| value.starts_with(p));
                let known = postgres || store::db::sqlite_path(value).is_some();
                problem(!known, "must be sqlite: with a file, or begin with postgres://")
            }
            Kind::LogUrl => {
                let known =
                    ["sqlite:", "mysql:", "mariadb:", "postgres:", "postgresql:"].iter().any(|p| value.starts_with(p));
                problem(!known, "must begin with sqlite:, mysql: or postgres:")
            }
            Kind::HttpUrl => {
                let http = Url::parse(value).is_ok_and(|u| matches!(u.scheme(), "http" | "https") && u.has_host());
                problem(!http, "must begin with http:// or https://")
            }
            Kind::PublicUrl => PublicUrl::parse(value).map(drop).map_err(|e| e.client.into_owned()),
            Kind::WindowUrl => super::embed::parse(value).map(drop).map_err(|e| e.client.into_owned()),
            Kind::Zone => problem(Zone::named(value).is_err(), "is not the IANA name of a time zone"),
            Kind::Bool => problem(!matches!(value, "true" | "false"), "must be true or false"),
            Kind::Number(least, most) => {
                let fits = value.parse::<i64>().is_ok_and(|n| (least..=most).contains(&n));
                problem(!fits, &format!("must be a number from {least} to {most}"))
            }
            Kind::OneOf(words) => problem(!words.contains(&value), &format!("must be one of {}", words.join(", "))),
            Kind::SomeOf(words) => {
                let all = !value.trim().is_empty() && list(value).iter().all(|w| words.contains(&w.as_str()));
                problem(!all, &format!("must be some of {}, with commas between", words.join(", ")))
            }
            Kind::Domains => {
                let bad = list(value).iter().any(|d| d.is_empty() || d.contains(['@', ' ', '/']));
                problem(bad, "must be domains with commas between")
            }
            Kind::Claim => problem(claim(value).is_none(), "must be a name and a value with `=` between"),
            Kind::Networks => problem(networks(value).is_none(), "must be addresses or networks with commas between"),
            Kind::LogFilter => {
                let read = tracing_subscriber::EnvFilter::from_str(value);
                problem(read.is_err(), "is not a log filter")
            }
        }
    }
}

/// The parts between commas.
pub fn list(value: &str) -> Vec<String> {
    value.split(',').map(|part| part.trim().to_lowercase()).collect()
}

/// A claim's name and its value.
pub fn claim(value: &str) -> Option<(String, String)> {
    let (name, value) = value.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// Networks, where a bare address is a network of one.
pub fn networks(value: &str) -> Option<Vec<IpNet>> {
    let one = |text: &str| text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    value.split(',').map(|part| one(part.trim())).collect()
}
