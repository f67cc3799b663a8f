//! The LLM gateway's side of the product: sub keys, models, quotas, usage and cost. Nothing here knows a server or an
//! assistant. What must be written to one is a task (`task`) that a crate above runs.

pub mod gateway;
pub mod input;
pub mod key;
pub mod log_watch;
pub mod model;
pub mod own_request;
pub mod provider;
pub mod quota;
pub mod request_log;
pub mod spoken;
pub mod task;
pub mod unlogged;
pub mod usage;
pub mod watch;

use std::ops::Deref;
use std::sync::Arc;

use gateway::Llm;
use quota::Quotas;
use usage::Feed;

/// The dependencies that the functions of this crate take.
pub struct App {
    pub engine: Arc<queue::App>,
    /// The quota grants of this process.
    pub quotas: Quotas,
    /// The LLM gateway that is configured: ours, or one that somebody else runs.
    pub upstream: Llm,
    /// Brings the gateway's log into ours.
    pub feed: Arc<dyn Feed>,
    /// The providers that the configuration names, and what records may be.
    pub providers: provider::Settings,
}

#[cfg(any(test, feature = "testing"))]
impl App {
    /// An `App` with the embedded gateway, at an address where nothing listens.
    pub fn for_tests(engine: queue::App) -> base::Result<App> {
        let upstream =
            Llm::embedded(engine.db.clone(), engine.clock.clone(), engine.sealer.clone(), "http://127.0.0.1:9")?;
        let feed = Arc::new(usage::Local(engine.clock.clone()));
        Ok(App {
            engine: Arc::new(engine),
            quotas: Quotas::new("tests"),
            upstream,
            feed,
            providers: provider::Settings::default(),
        })
    }
}

impl Deref for App {
    type Target = queue::App;

    fn deref(&self) -> &queue::App {
        &self.engine
    }
}

impl AsRef<queue::App> for App {
    fn as_ref(&self) -> &queue::App {
        self
    }
}

impl AsRef<App> for App {
    fn as_ref(&self) -> &App {
        self
    }
}
