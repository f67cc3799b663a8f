//! The errors of a conversation with a server. They are distinct where the caller reacts differently.

use std::fmt;
use std::time::Duration;

use base::Kind;

use super::key::HostKey;
use super::output::Output;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// It can be cloned, because all callers that waited for the same connection get it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    // Errors while connecting to the server.
    #[error("the address {host} cannot be resolved: {why}")]
    Address { host: String, why: String },
    #[error("{address} refuses connections")]
    Refused { address: String },
    #[error("{address} cannot be reached: {why}")]
    Unreachable { address: String, why: String },
    #[error("{address} did not answer within {} s", .limit.as_secs_f32())]
    ConnectTimedOut { address: String, limit: Duration },
    #[error("{address} does not speak SSH as we do: {why}")]
    NotSsh { address: String, why: String },
    #[error("the host key of {address} changed: {} is pinned, {} was seen", .pinned.fingerprint(), .seen.fingerprint())]
    HostKeyChanged { address: String, pinned: HostKey, seen: HostKey },
    #[error("the host key of {address} is refused: {why}")]
    HostKeyRefused { address: String, why: String, seen: HostKey },
    #[error("{address} refuses the login of {user}")]
    LoginRefused { address: String, user: String },
    #[error("the SSH key {name} cannot be used: {why}")]
    Key { name: String, why: String },

    // Errors of any command on the server.
    #[error("{user} may not use sudo without a password: {why}")]
    NoSudo { user: String, why: String },
    #[error("{command} did not end within {} s", .limit.as_secs_f32())]
    CommandTimedOut { command: String, limit: Duration },
    #[error("the connection was cut; whether {command} was done is not known")]
    CutOff { command: String },
    #[error("the server takes no more commands at once")]
    Busy,
    #[error("a command that cannot be sent: {0}")]
    BadCommand(&'static str),
    #[error("{command} ended with status {status}: {why}")]
    Failed { command: String, status: i32, why: String },
    /// Something that assistants need is missing, or unsuitable.
    #[error("{0}")]
    Unfit(String),
    #[error("{what} answered what cannot be understood: {why}")]
    Odd { what: String, why: String },

    // Errors about files.
    #[error("{path}: changed meanwhile by somebody else")]
    ChangedMeanwhile { path: String },
    #[error("{path}: no space left")]
    DiskFull { path: String },
    #[error("{path}: is read-only")]
    ReadOnly { path: String },
    #[error("{path}: permission denied")]
    Denied { path: String },
    #[error("{path}: is not a plain file")]
    NotAFile { path: String },
    #[error("{path}: there is no such folder")]
    NoFolder { path: String },
    #[error("{path}: is larger than {limit} bytes")]
    TooLarge { path: String, limit: usize },
    #[error("{path}: somebody else is writing it")]
    Locked { path: String },

    #[error("{path}: is not a folder, or its owner is no user of the server")]
    NotAHome { path: String },
    #[error("{path}: others than root can put something else in its place")]
    HomeReplaceable { path: String },
    #[error("{path}: is missing, or a link")]
    NoState { path: String },
    #[error("{why}")]
    NotVacated { why: String },

    // Errors about services, ports and containers.
    #[error("unit {unit}: is not there")]
    UnitMissing { unit: String },
    #[error("unit {unit}: was started too often in too short a time")]
    StartLimit { unit: String },
    #[error("unit {unit}: did not start: {why}")]
    NotStarted { unit: String, why: String },
    #[error("port {port}: nothing listens on it")]
    PortClosed { port: u16 },
    /// A socket on an instance's port does not belong to the instance.
    #[error("port {port}: held by {by}, and not by the instance alone")]
    Foreign { port: u16, by: String },
    #[error("the server forbids forwarded connections")]
    NoForwarding,
    #[error("docker: {0}")]
    NoDocker(String),
    #[error("container {0}: is not there")]
    NoContainer(String),
    #[error("nothing starts the process: it is only observed")]
    OnlyObserved,
    #[error("nothing keeps what the process writes")]
    NoLog,
}

/// What people read who want something of a process that the platform only observes.
pub const ONLY_OBSERVED: &str = "nothing on its server starts it: it is only observed, until it is moved into a cell";

impl Error {
    /// Whether the server could not be reached at all, so that the next command would fail the same way.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Error::Address { .. }
                | Error::Refused { .. }
                | Error::Unreachable { .. }
                | Error::ConnectTimedOut { .. }
                | Error::NotSsh { .. }
                | Error::HostKeyChanged { .. }
                | Error::HostKeyRefused { .. }
                | Error::LoginRefused { .. }
                | Error::Key { .. }
        )
    }

    /// Whether a failed write certainly changed nothing.
    pub fn is_undone(&self) -> bool {
        self.is_unreachable()
            || matches!(
                self,
                Error::Busy
                    | Error::ChangedMeanwhile { .. }
                    | Error::DiskFull { .. }
                    | Error::ReadOnly { .. }
                    | Error::Denied { .. }
                    | Error::NotAFile { .. }
                    | Error::NoFolder { .. }
                    | Error::TooLarge { .. }
                    | Error::Locked { .. }
            )
    }

    pub(super) fn odd(what: impl Into<String>, why: impl fmt::Display) -> Error {
        Error::Odd { what: what.into(), why: why.to_string() }
    }

    /// A command failed; keeps its own message.
    pub(super) fn failed(command: &str, output: &Output) -> Error {
        Error::Failed { command: command.to_owned(), status: output.status, why: output.complaint() }
    }

    /// A command about a file failed. The causes that need different reactions become different errors.
    pub(super) fn about_file(path: &str, command: &str, output: &Output) -> Error {
        let said = String::from_utf8_lossy(&output.stderr);
        let path = path.to_owned();
        let says = |texts: &[&str]| texts.iter().any(|text| said.contains(text));
        if says(&["No space left on device", "Disk quota exceeded"]) {
            Error::DiskFull { path }
        } else if says(&["Read-only file system", "Operation not permitted"]) {
            Error::ReadOnly { path }
        } else if says(&["Permission denied"]) {
            Error::Denied { path }
        } else {
            Error::failed(command, output)
        }
    }

    /// The kind and the message for the client. Addresses, paths and a server's output are only for the operator.
    fn client(&self) -> (Kind, &'static str) {
        match self {
            Error::Address { .. } => (Kind::Unavailable, "the server's address cannot be resolved"),
            Error::Refused { .. } => (Kind::Unavailable, "the server refuses connections"),
            Error::Unreachable { .. } => (Kind::Unavailable, "the server cannot be reached"),
            Error::ConnectTimedOut { .. } => (Kind::TimedOut, "the server does not answer"),
            Error::NotSsh { .. } => (Kind::Unavailable, "the server does not speak SSH as we do"),
            Error::HostKeyChanged { .. } => (Kind::Conflict, "the server's host key changed"),
            Error::HostKeyRefused { .. } => (Kind::Conflict, "the server's host key is not the expected one"),
            Error::LoginRefused { .. } => (Kind::Unavailable, "the server refuses the login"),
            Error::Key { .. } => (Kind::Conflict, "the server's SSH key cannot be used"),
            Error::NoSudo { .. } => (Kind::Unavailable, "the server's user may not use sudo"),
            Error::CommandTimedOut { .. } => (Kind::TimedOut, "the server did not finish in time"),
            Error::CutOff { .. } => (Kind::Unavailable, "the connection to the server was cut"),
            Error::Busy => (Kind::Unavailable, "the server is busy"),
            Error::BadCommand(_) => (Kind::Internal, Kind::Internal.message()),
            Error::Failed { .. } => (Kind::Gateway, "a command on the server failed"),
            Error::Unfit(_) => (Kind::Conflict, "the server lacks what assistants need"),
            Error::Odd { .. } => (Kind::Gateway, "the server answered badly"),
            Error::ChangedMeanwhile { .. } => (Kind::Conflict, "the file on the server was changed meanwhile"),
            Error::DiskFull { .. } => (Kind::Unavailable, "the server's disk is full"),
            Error::ReadOnly { .. } => (Kind::Unavailable, "the file on the server is read-only"),
            Error::Denied { .. } => (Kind::Unavailable, "the server denies access to the file"),
            Error::NotAFile { .. } => (Kind::Conflict, "there is something else in the file's place on the server"),
            Error::NoFolder { .. } => (Kind::Conflict, "the folder is missing on the server"),
            Error::TooLarge { .. } => (Kind::Conflict, "the file on the server is too large"),
            Error::Locked { .. } => (Kind::Conflict, "the file on the server is being written"),
            Error::NotAHome { .. } => (Kind::Conflict, "there is something else in the place of the instance's home"),
            Error::HomeReplaceable { .. } => {
                (Kind::Conflict, "the folder above the instance's home must be root's, and writable by nobody else")
            }
            Error::NoState { .. } => (Kind::Conflict, "the instance's state folder is missing, or a link"),
            Error::NotVacated { .. } => {
                (Kind::Conflict, "not everything that the last holder left on the server could be removed")
            }
            Error::UnitMissing { .. } => (Kind::Conflict, "the service is not set up on the server"),
            Error::StartLimit { .. } => (Kind::Conflict, "the service was started too often"),
            Error::NotStarted { .. } => (Kind::Gateway, "the service did not start"),
            Error::PortClosed { .. } => (Kind::Unavailable, "nothing listens on the port"),
            // `Conflict`, so that the caller tries no other connection: it could lead to the same program.
            Error::Foreign { .. } => (Kind::Conflict, "another program answers on the instance's port"),
            Error::NoForwarding => (Kind::Unavailable, "the server forbids forwarded connections"),
            Error::NoDocker(_) => (Kind::Unavailable, "the server has no working Docker"),
            Error::NoContainer(_) => (Kind::NotFound, "there is no such container"),
            Error::OnlyObserved => (Kind::Conflict, ONLY_OBSERVED),
            Error::NoLog => (Kind::Conflict, "nothing on the server keeps what it writes to its console"),
        }
    }
}

impl From<Error> for base::Error {
    fn from(error: Error) -> base::Error {
        let (kind, client) = error.client();
        base::Error::new(kind, client).with_operator(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_reads_names_no_address_path_or_output() {
        let error: base::Error = Error::DiskFull { path: "/srv/assistants/7/x".into() }.into();
        assert_eq!((error.kind, error.client.as_ref()), (Kind::Unavailable, "the server's disk is full"));
        assert_eq!(error.operator.as_deref(), Some("/srv/assistants/7/x: no space left"));

        let changed = Error::ChangedMeanwhile { path: "/x".into() };
        assert_eq!(base::Error::from(changed).kind, Kind::Conflict);
        let slow = Error::ConnectTimedOut { address: "10.0.0.1:22".into(), limit: Duration::from_secs(5) };
        assert!(slow.is_unreachable());
        let shown = base::Error::from(slow);
        assert_eq!((shown.kind, shown.client.contains("10.0.0.1")), (Kind::TimedOut, false));
    }
}
