//! Servers and what runs on them: assistants, their health and repair, the guardian, and the connections to assistants.
//! The crate also runs the tasks of the crates below (`handler`) and lists every task type and every job (`registry`).

pub mod adopt;
pub mod assistant;
pub mod bot;
pub mod cell;
pub mod cell_move;
pub mod chat;
pub mod container;
pub mod device;
pub mod discover;
pub mod embed;
pub mod guardian;
pub mod handler;
pub mod health;
pub mod host;
pub mod install;
pub mod instance;
mod job;
pub mod key_check;
pub mod listener;
pub mod marketplace;
pub mod pairing;
pub mod platform_device;
pub mod profession;
pub mod progress;
pub mod reconcile;
pub mod recovery;
pub mod registry;
pub mod relay;
pub mod repair;
pub mod rpc;
pub mod server;
pub mod sweep;
pub mod task;
pub mod tenant;
#[cfg(test)]
mod tests;

use std::ops::Deref;
use std::sync::Arc;

use remote::host::Hosts;

use bot::Bots;
use embed::Embed;
use guardian::Webchat;
use relay::Sockets;

/// The shared state that the functions of this crate get as their first argument.
pub struct App {
    pub people: Arc<people::App>,
    /// The servers that this process talks to.
    pub hosts: Hosts,
    pub assistants: assistant::Defaults,
    /// Which directives of a cell each server supports, cached from the last test.
    pub cells: assistant::cell::Abilities,
    /// The browser sockets that this process relays.
    pub sockets: Sockets,
    /// Settings of the embedded windows, which show the instances' own pages.
    pub embed: Embed,
    pub bots: Bots,
    /// Settings of guardian_webchat.
    pub webchat: Webchat,
}

#[cfg(any(test, feature = "testing"))]
impl App {
    /// Without servers and windows, and with a bot platform and an employee side that do not answer.
    pub fn for_tests(people: people::App) -> base::Result<App> {
        Ok(App {
            people: Arc::new(people),
            hosts: Hosts::new(),
            assistants: assistant::Defaults::default(),
            cells: assistant::cell::Abilities::default(),
            sockets: Sockets::default(),
            embed: Embed::disabled(),
            bots: Bots { platform: remote::bot::Platform::new("http://127.0.0.1:9")?, webhooks: None },
            webchat: Webchat { employee_url: "http://127.0.0.1:9".into(), is_paid: false },
        })
    }
}

impl Deref for App {
    type Target = people::App;

    fn deref(&self) -> &people::App {
        &self.people
    }
}

impl<T> AsRef<T> for App
where
    people::App: AsRef<T>,
{
    fn as_ref(&self) -> &T {
        (*self.people).as_ref()
    }
}
