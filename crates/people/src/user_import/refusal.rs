//! Why a line of an import does nothing.

use base::{Error, Kind};

/// Why a line does nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The line cannot be split into cells.
    Cells,
    Email,
    /// An earlier line has the same address.
    Duplicate,
    /// A name or department that is too long.
    Text,
    Quota,
    Password,
    Revoked,
    ProfessionUnknown,
    ProfessionAmbiguous,
    ProfessionInactive,
    /// No instance of the profession is ready.
    PoolEmpty,
    NoAccess,
    /// Somebody else changed the same records at the same time.
    Conflict,
    /// The server failed, and nothing was done.
    Failed,
    /// The server failed while it stored the line. It may have been stored.
    Uncertain,
    /// The server failed too often before.
    NotTried,
}

impl Refusal {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Refusal {
        Refusal { reason, message: message.into() }
    }

    pub(super) fn field(reason: Reason, field: &str, problem: impl std::fmt::Display) -> Refusal {
        Refusal::new(reason, format!("{field}: {problem}"))
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        match error.kind {
            Kind::NoAccess => Refusal::new(Reason::NoAccess, error.client),
            Kind::Conflict | Kind::AlreadyHolds | Kind::NotFound => Refusal::new(Reason::Conflict, error.client),
            _ => {
                tracing::error!(%error, "a line of an import failed");
                Refusal::new(Reason::Failed, "the server failed, and this line changed nothing; try it again")
            }
        }
    }
}

impl From<store::Error> for Refusal {
    fn from(error: store::Error) -> Refusal {
        Error::from(error).into()
    }
}
