//! Watches whether the visitor of an open socket still has access. A notice from any replica triggers a check at once.
//! Since notices may be lost, there is also a periodic check.

use std::time::Duration;

use base::Kind;
use store::notice::{Notice, Topic};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout};

use super::{End, RelayMode, Visitor};
use crate::App;

/// Timeout of one check.
const CHECK: Duration = Duration::from_secs(15);
/// How long a socket stays open while its visitor cannot be checked.
const BLIND: Duration = Duration::from_secs(60);

/// Waits until the login or the binding has ended, or the window is switched off.
pub async fn ended(app: &App, visitor: &Visitor, mode: RelayMode) -> End {
    // Subscribe before the first check, so that no change between the two is missed.
    let mut notices = app.db.listen();
    let mut seen = Instant::now();
    loop {
        match timeout(CHECK, visitor.may_speak(app, mode)).await {
            Ok(Ok(_)) => seen = Instant::now(),
            Ok(Err(error)) if matches!(error.kind, Kind::Unauthorized | Kind::NotFound | Kind::NoAccess) => {
                return End::from(error);
            }
            // A short outage of the database must not end chats.
            Ok(Err(error)) => tracing::warn!(%error, "an open socket could not be checked"),
            Err(_) => tracing::warn!("an open socket could not be checked in time"),
        }
        if seen.elapsed() >= BLIND {
            return End::new(End::LATER, "the platform cannot check the session at present");
        }
        let left = visitor.token.expires_at.duration_since(app.clock.now());
        let wait = Duration::try_from(left).unwrap_or_default().clamp(Duration::from_millis(100), app.sockets.look());
        tokio::select! {
            () = concerning(&mut notices, visitor) => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

async fn concerning(notices: &mut tokio::sync::broadcast::Receiver<Notice>, visitor: &Visitor) {
    loop {
        match notices.recv().await {
            Ok(Notice { topic: Topic::User, id }) if id == visitor.user.as_str() => return,
            Ok(Notice { topic: Topic::Instance, id }) if id == visitor.instance.as_str() => return,
            Ok(Notice { topic: Topic::Anything, .. }) => return,
            Ok(_) => {}
            // Some notices were missed, and one of them may be about this visitor.
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
