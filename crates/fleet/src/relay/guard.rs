//! Watches, beside an open socket, whether its visitor may still be there. Notices of any replica make it look at once; since
//! they may be lost, it also looks by itself.

use std::time::Duration;

use base::Kind;
use store::notice::{Notice, Topic};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout};

use super::{End, RelayMode, Visitor};
use crate::App;

/// How long a look may take.
const CHECK: Duration = Duration::from_secs(15);
/// How long a socket stays open that nobody can look after.
const BLIND: Duration = Duration::from_secs(60);

/// Waits until the login or the binding has ended, or the window is switched off.
pub async fn ended(app: &App, visitor: &Visitor, mode: RelayMode) -> End {
    // Before the first look: what happens between the two is heard.
    let mut notices = app.db.listen();
    let mut seen = Instant::now();
    loop {
        match timeout(CHECK, visitor.may_speak(app, mode)).await {
            Ok(Ok(_)) => seen = Instant::now(),
            Ok(Err(error)) if matches!(error.kind, Kind::Unauthorized | Kind::NotFound | Kind::NoAccess) => {
                return End::from(error);
            }
            // A database that is away for a moment ends nobody's chat.
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
            // Some were missed: one of them may have been about us.
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
