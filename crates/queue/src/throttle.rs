//! Limits on logins, second factors, sign-in redirects and password changes, counted in the database so that all
//! replicas share them.

use std::time::Duration;

use base::{Error, Kind, Result};
use jiff::SignedDuration;
use store::throttle::{self, Window};

use crate::App;

/// At most `most` hits of one name per window.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub what: &'static str,
    pub most: i64,
    pub window: SignedDuration,
}

const FIVE_MINUTES: SignedDuration = SignedDuration::from_mins(5);

/// Failures for one e-mail from one address.
pub const LOGIN_PAIR: Limit = Limit { what: "login-pair", most: 10, window: FIVE_MINUTES };
/// Failures for one e-mail from any address. The limit is high, because strangers could use it to lock somebody out.
pub const LOGIN_EMAIL: Limit = Limit { what: "login-email", most: 200, window: FIVE_MINUTES };
/// Failures of a browser that signed in to that account before: strangers do not count against it.
pub const LOGIN_BROWSER: Limit = Limit { what: "login-browser", most: 10, window: FIVE_MINUTES };
/// Audit entries about logins that were refused by a limit.
pub const LOGIN_NOTE: Limit = Limit { what: "login-note", most: 1, window: SignedDuration::from_mins(1) };
pub const LOGIN_ADDRESS: Limit = Limit { what: "login-address", most: 30, window: FIVE_MINUTES };
pub const PASSWORD_CHANGE: Limit = Limit { what: "password", most: 10, window: FIVE_MINUTES };
/// Wrong codes of one account. The limit per hour keeps the chance of a right guess near one in a thousand per day.
pub const SECOND_FACTOR: Limit = Limit { what: "mfa", most: 10, window: FIVE_MINUTES };
pub const SECOND_FACTOR_HOUR: Limit = Limit { what: "mfa-hour", most: 15, window: SignedDuration::from_hours(1) };
/// Generous: a whole company may sign in from one address at nine o'clock.
pub const SSO_ADDRESS: Limit = Limit { what: "sso", most: 300, window: FIVE_MINUTES };

/// Sockets of one user. A browser that reconnects after every break stays far below.
pub const SOCKET: Limit = Limit { what: "socket", most: 120, window: SignedDuration::from_mins(1) };

/// Looks at the pairing requests of one instance. Each starts a program on its server; a page looks six times a minute.
pub const PAIRING: Limit = Limit { what: "pairing", most: 30, window: SignedDuration::from_mins(1) };

impl Limit {
    fn name(self, of: &str) -> String {
        format!("{}:{of}", self.what)
    }

    /// Refuses when the window is full.
    pub async fn check(self, app: &App, of: &str) -> Result<()> {
        let window = throttle::window(&app.db, &self.name(of), self.window, app.clock.now()).await?;
        match window {
            Some(window) if window.hits >= self.most => Err(self.refusal(app, window)),
            _ => Ok(()),
        }
    }

    /// Counts one hit, and refuses when it is one too many.
    pub async fn hit(self, app: &App, of: &str) -> Result<()> {
        let now = app.clock.now();
        let window = throttle::hit(&app.db, &self.name(of), self.window, now).await?;
        // Clean up once in a while, so that invented names do not fill the table.
        if window.hits == 1 && base::secret::random_bytes::<1>()?[0] == 0 {
            throttle::forget(&app.db, now - SignedDuration::from_hours(1)).await?;
        }
        if window.hits > self.most { Err(self.refusal(app, window)) } else { Ok(()) }
    }

    pub async fn clear(self, app: &App, of: &str) -> Result<()> {
        Ok(throttle::clear(&app.db, &self.name(of)).await?)
    }

    fn refusal(self, app: &App, window: Window) -> Error {
        let left = (window.window_start + self.window).duration_since(app.clock.now());
        let seconds = left.as_secs().clamp(1, self.window.as_secs()) as u64;
        Error::from(Kind::TooManyRequests)
            .with_operator(format!("{} is over its limit", self.what))
            .retry_after(Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests {
    use base::Clock;
    use testkit::Database;

    use super::*;

    const TWICE: Limit = Limit { what: "test", most: 2, window: FIVE_MINUTES };

    async fn app() -> (App, Database) {
        let database = Database::sqlite();
        let clock = Clock::manual("2026-11-15T12:00:00Z".parse().unwrap());
        (App::for_tests(database.migrated().await, clock).unwrap(), database)
    }

    #[tokio::test]
    async fn one_too_many_is_refused_until_the_window_is_over() {
        let (app, _database) = app().await;
        TWICE.hit(&app, "a").await.unwrap();
        TWICE.hit(&app, "a").await.unwrap();
        let refused = TWICE.hit(&app, "a").await.unwrap_err();
        assert_eq!((refused.kind, refused.retry_after), (Kind::TooManyRequests, Some(Duration::from_secs(300))));
        TWICE.hit(&app, "b").await.expect("another name has a count of its own");
        app.clock.advance(FIVE_MINUTES);
        TWICE.hit(&app, "a").await.expect("the next window");
    }

    #[tokio::test]
    async fn a_check_does_not_count() {
        let (app, _database) = app().await;
        for _ in 0..5 {
            TWICE.check(&app, "a").await.unwrap();
        }
        TWICE.hit(&app, "a").await.unwrap();
        TWICE.hit(&app, "a").await.unwrap();
        assert_eq!(TWICE.check(&app, "a").await.unwrap_err().kind, Kind::TooManyRequests);
        TWICE.clear(&app, "a").await.unwrap();
        TWICE.check(&app, "a").await.expect("who succeeded begins again");
    }
}
