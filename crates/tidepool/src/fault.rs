//! Errors of files and of the database, for the operator at the command line.

use std::path::Path;

use base::{Error, Kind};

/// An error about a file.
pub fn file_error(file: &Path, error: std::io::Error) -> Error {
    Error::internal(format_args!("{}: {error}", file.display()))
}

/// An error of the database.
pub fn operator(error: store::Error) -> Error {
    Error::from(Kind::Internal).with_operator(error)
}

/// One line for the operator, who may know everything but secrets.
pub fn shown(error: &Error) -> &str {
    error.operator.as_deref().unwrap_or(&error.client)
}
