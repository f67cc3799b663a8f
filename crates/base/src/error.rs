//! The one error of the product. It carries two texts, one for the client and one for the operator, so that internals
//! cannot leak by accident. `api::error` maps it to a status and a code.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The kind of an error, which the client may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    BadRequest,
    Unauthorized,
    WrongLogin,
    WrongCode,
    NoAccess,
    AccountRevoked,
    NotFound,
    SsoNotConfigured,
    MethodNotAllowed,
    Conflict,
    AlreadyHolds,
    NoIdleInstance,
    TooLarge,
    TooManyRequests,
    QuotaUsedUp,
    Internal,
    SaveFailed,
    Gateway,
    Unavailable,
    TimedOut,
}

impl Kind {
    pub const ALL: &[Kind] = &[
        Kind::BadRequest,
        Kind::Unauthorized,
        Kind::WrongLogin,
        Kind::WrongCode,
        Kind::NoAccess,
        Kind::AccountRevoked,
        Kind::NotFound,
        Kind::SsoNotConfigured,
        Kind::MethodNotAllowed,
        Kind::Conflict,
        Kind::AlreadyHolds,
        Kind::NoIdleInstance,
        Kind::TooLarge,
        Kind::TooManyRequests,
        Kind::QuotaUsedUp,
        Kind::Internal,
        Kind::SaveFailed,
        Kind::Gateway,
        Kind::Unavailable,
        Kind::TimedOut,
    ];

    /// The default message for the client.
    pub fn message(self) -> &'static str {
        match self {
            Kind::BadRequest => "bad request",
            Kind::Unauthorized => "unauthorized",
            Kind::WrongLogin => "wrong email or password",
            Kind::WrongCode => "wrong code",
            Kind::NoAccess => "no access",
            Kind::AccountRevoked => "account revoked",
            Kind::NotFound => "not found",
            Kind::SsoNotConfigured => "sso not configured",
            Kind::MethodNotAllowed => "method not allowed",
            Kind::Conflict => "conflict",
            Kind::AlreadyHolds => "you already hold an instance",
            Kind::NoIdleInstance => "no idle instance",
            Kind::TooLarge => "payload too large",
            Kind::TooManyRequests => "too many requests",
            Kind::QuotaUsedUp => "daily quota used up",
            Kind::Internal => "internal error",
            Kind::SaveFailed => "save failed",
            Kind::Gateway => "gateway error",
            Kind::Unavailable => "unavailable",
            Kind::TimedOut => "timed out",
        }
    }
}

#[derive(Debug)]
pub struct Error {
    pub kind: Kind,
    /// The text for the client.
    pub client: Cow<'static, str>,
    /// Additional text for the log. It is never sent to the client.
    pub operator: Option<String>,
    /// How long the client should wait before a retry.
    pub retry_after: Option<Duration>,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(kind: Kind, client: impl Into<Cow<'static, str>>) -> Error {
        Error { kind, client: client.into(), operator: None, retry_after: None }
    }

    /// A field of the request is not valid.
    pub fn field(field: &str, problem: impl fmt::Display) -> Error {
        Error::new(Kind::BadRequest, format!("{field}: {problem}"))
    }

    pub fn conflict(why: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Kind::Conflict, why)
    }

    /// An internal error: the client sees only the request id.
    pub fn internal(why: impl fmt::Display) -> Error {
        Error::from(Kind::Internal).with_operator(why)
    }

    pub fn with_operator(mut self, why: impl fmt::Display) -> Error {
        self.operator = Some(why.to_string());
        self
    }

    pub fn retry_after(mut self, after: Duration) -> Error {
        self.retry_after = Some(after);
        self
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Error {
        Error::new(kind, kind.message())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.operator {
            Some(operator) => write!(f, "{}: {operator}", self.client),
            None => f.write_str(&self.client),
        }
    }
}

impl std::error::Error for Error {}
