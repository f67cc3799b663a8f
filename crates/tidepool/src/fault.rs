//! Errors of files and of the database, as the operator at the command line reads them.

use std::path::Path;

use base::{Error, Kind};

/// With the file that it is about.
pub fn file_error(file: &Path, error: std::io::Error) -> Error {
    Error::internal(format_args!("{}: {error}", file.display()))
}

/// A store's error.
pub fn operator(error: store::Error) -> Error {
    Error::from(Kind::Internal).with_operator(error)
}

/// One line for the operator, who may know everything but secrets.
pub fn shown(error: &Error) -> &str {
    error.operator.as_deref().unwrap_or(&error.client)
}
