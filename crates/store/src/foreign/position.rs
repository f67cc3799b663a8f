//! A position in a foreign log: rows up to it were read, rows after it are new.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::Error;

/// Positions are not ordered here: only the log's own database can compare two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// In a log whose rows have ascending ids.
    Id(i64),
    /// In a log that is ordered by time; rows of the same time are ordered by request id.
    Time { at: Timestamp, request_id: String },
}

impl Position {
    /// The position some time earlier, for rows that became visible late. A position by id stays: there, missing ids
    /// reveal late rows.
    pub fn before(&self, by: jiff::SignedDuration) -> Position {
        match self {
            Position::Id(id) => Position::Id(*id),
            Position::Time { at, .. } => Position::Time {
                at: at.checked_sub(by).unwrap_or(Timestamp::UNIX_EPOCH).max(Timestamp::UNIX_EPOCH),
                request_id: String::new(),
            },
        }
    }

    pub fn id(&self) -> Option<i64> {
        match self {
            Position::Id(id) => Some(*id),
            Position::Time { .. } => None,
        }
    }
}

/// The stored form: `id 17`, or `at 1794701832123 <request>`.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Id(id) => write!(f, "id {id}"),
            Position::Time { at, request_id } => write!(f, "at {} {request_id}", at.as_millisecond()),
        }
    }
}

impl FromStr for Position {
    type Err = Error;

    fn from_str(text: &str) -> Result<Position, Error> {
        let parsed = match text.split_once(' ') {
            Some(("id", id)) => id.parse().ok().map(Position::Id),
            Some(("at", rest)) => rest.split_once(' ').and_then(|(ms, request_id)| {
                let at = Timestamp::from_millisecond(ms.parse().ok()?).ok()?;
                Some(Position::Time { at, request_id: request_id.to_owned() })
            }),
            _ => None,
        };
        parsed.ok_or_else(|| Error::Column("position".into(), format!("{text} is none")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let at = Timestamp::from_millisecond(1_794_701_832_123).unwrap();
        for position in [
            Position::Id(0),
            Position::Id(i64::MAX),
            Position::Time { at, request_id: "chatcmpl-1 with a blank".into() },
            Position::Time { at: Timestamp::UNIX_EPOCH, request_id: String::new() },
        ] {
            assert_eq!(position.to_string().parse::<Position>().unwrap(), position);
        }
        for none in ["", "id", "id x", "at 5", "at x y", "17"] {
            none.parse::<Position>().unwrap_err();
        }
    }

    #[test]
    fn the_beginning_has_nothing_before_it() {
        let start = Position::Time { at: Timestamp::UNIX_EPOCH, request_id: "x".into() };
        let hour = jiff::SignedDuration::from_hours(1);
        assert_eq!(start.before(hour), Position::Time { at: Timestamp::UNIX_EPOCH, request_id: String::new() });
        assert_eq!(Position::Id(7).before(hour), Position::Id(7));
    }
}
