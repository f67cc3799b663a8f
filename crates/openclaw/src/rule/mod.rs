//! The repair rules: how each is recognised in logs, in the configuration and in a sweep. What is done about a
//! finding is decided elsewhere, and only after a second check: see `Confidence`.
//!
//! One file per rule. Their examples from real logs are in `samples/rules`.

mod auth_profiles;
mod bot_channel;
mod exit_loop;
mod no_api_key;
mod not_listening;
mod out_of_memory;
mod port_taken;
mod rate_limited;
mod unknown_key;

use std::fmt;

use jiff::{SignedDuration, Timestamp};

pub use auth_profiles::remove as remove_auth_profiles;

use crate::config::Bind;
use crate::document::{Document, mask_words};
use crate::log::{Line, Origin};
use crate::sweep::{Answer, Process, Runner, Server};

/// Looks for one rule's case. It decides nothing and changes nothing.
pub type Detect = fn(&Evidence<'_>) -> Option<Finding>;

macro_rules! rules {
    ($($name:ident = $module:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule { $($name),* }

        /// All rules, in the order of their numbers.
        pub const RULES: &[(Rule, Detect)] = &[$((Rule::$name, $module::detect)),*];

        impl Rule {
            /// Its name in the ledger, which is that of its module.
            pub fn as_str(self) -> &'static str {
                match self { $(Rule::$name => stringify!($module)),* }
            }
        }
    };
}

// The ledger shows the numbers too, so a new rule goes to the end.
rules! {
    NoApiKey = no_api_key,
    ExitLoop = exit_loop,
    OutOfMemory = out_of_memory,
    UnknownKey = unknown_key,
    AuthProfiles = auth_profiles,
    PortTaken = port_taken,
    NotListening = not_listening,
    RateLimited = rate_limited,
    BotChannel = bot_channel,
}

impl Rule {
    pub fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// What is known of an instance. A rule finds nothing if the data that it needs is missing.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// By the server's clock.
    pub now: Timestamp,
    /// Lines of the log file and the journal, since the last check.
    pub lines: &'a [Line],
    pub document: Option<&'a Document>,
    pub state: Option<(&'a Server, &'a Answer)>,
    pub expected: &'a Expected,
}

/// How the instance should be.
#[derive(Clone, Debug)]
pub struct Expected {
    pub runner: Runner,
    /// Where it listens; `None` if that is not ours to say.
    pub bind: Option<Bind>,
    /// A chat-bot is bound to it.
    pub bot: bool,
}

/// Something that one rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub confidence: Confidence,
    pub detail: Detail,
    /// The evidence, shortened.
    pub excerpt: String,
    /// When the line with the evidence was written; `None` if it is a fact of the present.
    pub time: Option<Timestamp>,
}

/// How certain a finding is. `Hearsay` alone must not change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// A line of the console. A chat reply can say the same, so it must be confirmed by other evidence.
    Hearsay,
    /// OpenClaw's own log file. The problem may be over, so it must be confirmed by the present state.
    Logged,
    /// Reported by systemd, the kernel or the configuration itself.
    Fact,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// No key for this provider.
    NoApiKey {
        provider: String,
    },
    /// Ended with status 1 this often within five minutes.
    ExitLoop {
        exits: usize,
    },
    /// Refused to start until OpenClaw's doctor has migrated older settings.
    Migration,
    OutOfMemory,
    /// The log's message about unknown keys. `config validate` decides which keys to delete, never this text.
    UnknownKey {
        message: String,
    },
    /// `auth.profiles` is in the configuration, perhaps with an order that names its profiles.
    AuthProfiles {
        ordered: bool,
    },
    /// A healthy gateway has this instance's address, such as `ws://127.0.0.1:18789`; or, without an address, its
    /// state.
    PortTaken {
        address: Option<String>,
    },
    NotListening(Listening),
    /// This many turns ran into the provider's limit.
    RateLimited {
        turns: usize,
        model: Option<String>,
    },
    BotChannel(Channel),
}

/// What was found where the instance should listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listening {
    Nobody,
    /// The instance itself, but at another address.
    Elsewhere {
        addresses: Vec<String>,
    },
    /// Another process. It may be ended only if it is an OpenClaw gateway, and not another instance's.
    Stranger {
        owner: Option<Process>,
    },
    /// The log says that the port is in use; the port itself was not checked.
    Waiting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    Missing,
    Disabled,
    NoToken,
    /// The platform does not know the token.
    Refused,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} ({})", self.number(), self.as_str())
    }
}

/// The time window for rules that count.
const WINDOW: SignedDuration = SignedDuration::from_mins(5);
/// How many characters of a line a finding shows.
const EXCERPT: usize = 300;

impl Evidence<'_> {
    /// The lines in the window, for rules that count. A line without a time was read just now.
    fn recent(&self) -> impl Iterator<Item = &Line> {
        let since = self.now.checked_sub(WINDOW).unwrap_or(Timestamp::MIN);
        self.lines.iter().filter(move |line| line.time.is_none_or(|time| time >= since))
    }
}

impl Finding {
    fn by(line: &Line, detail: Detail) -> Finding {
        let confidence = match line.origin {
            Origin::File => Confidence::Logged,
            Origin::Console => Confidence::Hearsay,
            Origin::System(_) => Confidence::Fact,
        };
        Finding { confidence, detail, excerpt: excerpt(&line.message), time: line.time }
    }

    fn fact(detail: Detail, excerpt: impl Into<String>) -> Finding {
        Finding { confidence: Confidence::Fact, detail, excerpt: excerpt.into(), time: None }
    }
}

/// An excerpt of a line: shortened, without anything that looks like a secret.
fn excerpt(text: &str) -> String {
    let shown: String = text.chars().take(EXCERPT).collect();
    let rest = if shown.len() < text.len() { "…" } else { "" };
    // A mask may be longer than the text that it hides.
    mask_words(&shown).chars().take(EXCERPT).chain(rest.chars()).collect()
}

/// The finding with the highest confidence; the last one among equals.
fn best(findings: impl Iterator<Item = Finding>) -> Option<Finding> {
    findings.max_by_key(|finding| finding.confidence)
}

#[cfg(test)]
mod tests;
