//! The arguments of statements and the columns of rows, for both databases.

use base::id::{
    AdminId, AlertId, BindingId, ChatBindingId, EntryId, InstallId, InstanceId, ItemId, KeyId, MessageId, ProfessionId,
    ProviderId, ProviderKeyId, ServerId, TaskId, UserId,
};
use base::{GatewayPort, NonEmpty};
use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use crate::{Error, Result};

/// A bound argument. `None` keeps its type, which PostgreSQL requires.
#[derive(Clone, Debug)]
pub enum Value {
    Int(Option<i64>),
    Real(Option<f64>),
    Text(Option<String>),
}

macro_rules! value_from {
    ($($t:ty => $variant:ident, $v:ident $conv:expr;)*) => {$(
        impl From<$t> for Value { fn from($v: $t) -> Self { Value::$variant(Some($conv)) } }
        impl From<Option<$t>> for Value { fn from(v: Option<$t>) -> Self { Value::$variant(v.map(|$v| $conv)) } }
    )*};
}
impl From<usize> for Value {
    fn from(n: usize) -> Value {
        Value::Int(Some(n as i64))
    }
}
value_from! {
    i64 => Int, v v;
    i32 => Int, v v.into();
    bool => Int, v v.into();
    f64 => Real, v v;
    String => Text, v storable(v);
    &str => Text, v storable(v.to_owned());
    &String => Text, v storable(v.clone());
    Timestamp => Int, v v.as_millisecond();
}

/// PostgreSQL cannot store a NUL in a text. Texts from servers and logs may have one, so it is replaced with U+FFFD; it
/// is not removed, so that the text stays different from one without it.
pub(crate) fn storable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => { vec![$($crate::row::Value::from($arg)),*] };
}
/// A row of either database.
pub enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl From<SqliteRow> for Row {
    fn from(row: SqliteRow) -> Row {
        Row::Sqlite(row)
    }
}
impl From<PgRow> for Row {
    fn from(row: PgRow) -> Row {
        Row::Postgres(row)
    }
}

impl Row {
    pub fn get<T: Column>(&self, name: &str) -> Result<T> {
        T::read(self, name)
    }
}

/// Converts the rows of a driver to ours.
pub(crate) trait MapRow {
    type Ours;
    fn map_row(self) -> Self::Ours;
}
impl<R: Into<Row>> MapRow for Vec<R> {
    type Ours = Vec<Row>;
    fn map_row(self) -> Vec<Row> {
        self.into_iter().map(Into::into).collect()
    }
}
impl<R: Into<Row>> MapRow for Option<R> {
    type Ours = Option<Row>;
    fn map_row(self) -> Option<Row> {
        self.map(Into::into)
    }
}

/// A Rust type that a column can be read as.
pub trait Column: Sized {
    fn read(row: &Row, name: &str) -> Result<Self>;
}

macro_rules! native_column {
    ($($t:ty),*) => {$(
        impl Column for $t {
            fn read(row: &Row, name: &str) -> Result<Self> {
                Ok(match row {
                    Row::Sqlite(r) => r.try_get(name)?,
                    Row::Postgres(r) => r.try_get(name)?,
                })
            }
        }
    )*};
}
native_column!(i64, Option<i64>, f64, Option<f64>, String, Option<String>);

impl Column for bool {
    fn read(row: &Row, name: &str) -> Result<Self> {
        Ok(row.get::<i64>(name)? != 0)
    }
}
impl Column for Option<bool> {
    fn read(row: &Row, name: &str) -> Result<Self> {
        Ok(row.get::<Option<i64>>(name)?.map(|number| number != 0))
    }
}
impl Column for Timestamp {
    fn read(row: &Row, name: &str) -> Result<Self> {
        Timestamp::from_millisecond(row.get(name)?).map_err(|e| Error::Column(name.into(), e.to_string()))
    }
}
impl Column for Option<Timestamp> {
    fn read(row: &Row, name: &str) -> Result<Self> {
        let at = row.get::<Option<i64>>(name)?.map(Timestamp::from_millisecond).transpose();
        at.map_err(|e| Error::Column(name.into(), e.to_string()))
    }
}

impl Column for Option<NonEmpty> {
    fn read(row: &Row, name: &str) -> Result<Self> {
        Ok(NonEmpty::new(row.get::<String>(name)?))
    }
}
impl From<&Option<NonEmpty>> for Value {
    fn from(text: &Option<NonEmpty>) -> Value {
        text.as_deref().unwrap_or_default().into()
    }
}
impl Column for GatewayPort {
    fn read(row: &Row, name: &str) -> Result<Self> {
        GatewayPort::try_from(row.get::<i64>(name)?).map_err(|why| Error::Column(name.into(), why.into()))
    }
}
impl From<GatewayPort> for Value {
    fn from(port: GatewayPort) -> Value {
        port.get().into()
    }
}

macro_rules! id_column {
    ($($t:ident),* $(,)?) => {$(
        impl Column for $t {
            fn read(row: &Row, name: &str) -> Result<Self> {
                Ok($t::named(row.get::<String>(name)?))
            }
        }
        impl Column for Option<$t> {
            fn read(row: &Row, name: &str) -> Result<Self> {
                Ok(row.get::<Option<String>>(name)?.map($t::named))
            }
        }
        impl From<&$t> for Value {
            fn from(id: &$t) -> Value {
                id.as_str().into()
            }
        }
        impl From<Option<&$t>> for Value {
            fn from(id: Option<&$t>) -> Value {
                id.map($t::as_str).into()
            }
        }
    )*};
}
id_column!(
    UserId,
    AdminId,
    ServerId,
    InstanceId,
    ProfessionId,
    EntryId,
    BindingId,
    ChatBindingId,
    TaskId,
    ItemId,
    InstallId,
    KeyId,
    ProviderId,
    ProviderKeyId,
    MessageId,
    AlertId,
);

/// An enum that `word!` defined.
pub trait Word: Column {}

/// A column that is NULL, or empty, has no word.
impl<T: Word> Column for Option<T> {
    fn read(row: &Row, name: &str) -> Result<Self> {
        match row.get::<Option<String>>(name)?.as_deref() {
            None | Some("") => Ok(None),
            Some(_) => T::read(row, name).map(Some),
        }
    }
}

/// Defines an enum that is stored as one word of a closed set.
#[macro_export]
macro_rules! word {
    ($(#[$m:meta])* pub enum $name:ident { $($(#[$vm:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$m])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vm])* $variant),* }
        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),*];
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
            pub fn parse(text: &str) -> Option<$name> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }
        }
        impl $crate::row::Column for $name {
            fn read(row: &$crate::row::Row, name: &str) -> $crate::Result<Self> {
                let text: String = row.get(name)?;
                $name::parse(&text).ok_or_else(|| $crate::Error::Column(name.into(), format!("unknown word {text}")))
            }
        }
        impl From<$name> for $crate::row::Value {
            fn from(word: $name) -> Self { word.as_str().into() }
        }
        impl $crate::row::Word for $name {}
    };
}

/// A struct read from a row, column by column.
pub trait Record: Sized {
    const COLUMNS: &'static str;
    fn from_row(row: &Row) -> Result<Self>;
}

#[macro_export]
macro_rules! record {
    ($(#[$m:meta])* $v:vis struct $name:ident { $($(#[$fm:meta])* $fv:vis $f:ident : $t:ty),* $(,)? }) => {
        $(#[$m])* $v struct $name { $($(#[$fm])* $fv $f: $t),* }
        impl $crate::row::Record for $name {
            const COLUMNS: &'static str = $crate::columns!($($f),*);
            fn from_row(row: &$crate::row::Row) -> $crate::Result<Self> {
                Ok($name { $($f: row.get($crate::row::plain(stringify!($f)))?),* })
            }
        }
    };
}
#[macro_export]
macro_rules! columns {
    ($first:ident $(, $rest:ident)*) => { concat!(stringify!($first) $(, ", ", stringify!($rest))*) };
}

record! {
    /// A single number, selected `AS n`.
    pub struct Number { pub n: i64 }
}

/// A field's name without the `r#` of names that are keywords.
pub fn plain(name: &'static str) -> &'static str {
    name.strip_prefix("r#").unwrap_or(name)
}
