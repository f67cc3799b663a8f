//! Parses JSON5 as OpenClaw does (the json5 package, version 2.2) and records the position of everything, so that an
//! edit can leave the rest of the text alone.

use std::fmt;
use std::ops::Range;

use serde_json::{Map, Number, Value};

/// Deeper than any real configuration, and shallow enough that the recursive parser cannot exhaust the stack.
const MAX_DEPTH: usize = 100;

/// Why a text is not JSON5, and where. It quotes at most one character of the text, which may contain secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    pub problem: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.problem)
    }
}

impl std::error::Error for ParseError {}

impl ParseError {
    pub(super) fn at(text: &str, position: usize, problem: impl Into<String>) -> ParseError {
        let before = &text[..text.floor_char_boundary(position)];
        let line = before.matches('\n').count() + 1;
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        ParseError { line, column: before[begin..].chars().count() + 1, problem: problem.into() }
    }
}

#[derive(Clone)]
pub(super) struct Node {
    pub span: Range<usize>,
    pub kind: Kind,
}

#[derive(Clone)]
pub(super) enum Kind {
    /// Null, a boolean or a number.
    Plain(Value),
    Text(String),
    Array(Vec<Item>),
    Object(Vec<Item>),
}

/// A member of an object or an element of an array.
#[derive(Clone)]
pub(super) struct Item {
    /// The key, if it is a member of an object.
    pub key: Option<String>,
    /// Where the item begins: at its key, or at its value.
    pub start: usize,
    pub value: Node,
    /// The position of the comma after it.
    pub comma: Option<usize>,
}

impl Item {
    /// The position after its value and its comma.
    pub fn end(&self) -> usize {
        self.comma.map_or(self.value.span.end, |comma| comma + 1)
    }
}

impl Node {
    pub fn items(&self) -> Option<&[Item]> {
        match &self.kind {
            Kind::Array(items) | Kind::Object(items) => Some(items),
            Kind::Plain(_) | Kind::Text(_) => None,
        }
    }

    pub fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }

    /// The value as OpenClaw sees it: if a key occurs twice, the last counts.
    pub fn value(&self) -> Value {
        match &self.kind {
            Kind::Plain(value) => value.clone(),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::Array(items) => items.iter().map(|item| item.value.value()).collect(),
            Kind::Object(items) => {
                let mut map = Map::new();
                for item in items {
                    map.insert(item.key.clone().unwrap_or_default(), item.value.value());
                }
                Value::Object(map)
            }
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Node, ParseError> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_trivia()?;
    if reader.at == text.len() {
        return Err(reader.problem("there is no value"));
    }
    let root = reader.value(0)?;
    reader.skip_trivia()?;
    match reader.peek() {
        None => Ok(root),
        Some(_) => Err(reader.unexpected("the end")),
    }
}

pub(super) fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

pub(super) fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\u{b}' | '\u{c}' | ' ' | '\u{a0}' | '\u{feff}' | '\u{1680}' | '\u{2000}'..='\u{200a}')
        || matches!(c, '\u{202f}' | '\u{205f}' | '\u{3000}')
        || is_line_end(c)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        if there {
            self.at += c.len_utf8();
        }
        there
    }

    fn problem(&self, what: impl Into<String>) -> ParseError {
        ParseError::at(self.text, self.at, what)
    }

    fn unexpected(&self, expected: &str) -> ParseError {
        match self.peek() {
            Some(c) => self.problem(format!("expected {expected}, found {c:?}")),
            None => self.problem(format!("expected {expected}, found the end of the file")),
        }
    }

    fn skip_trivia(&mut self) -> Result<(), ParseError> {
        loop {
            let rest = &self.text[self.at..];
            if let Some(inside) = rest.strip_prefix("//") {
                let end = inside.find(is_line_end).unwrap_or(inside.len());
                self.at += 2 + end;
            } else if let Some(inside) = rest.strip_prefix("/*") {
                let end = inside.find("*/").ok_or_else(|| self.problem("this comment has no end"))?;
                self.at += end + 4;
            } else if rest.starts_with(is_space) {
                self.bump();
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, ParseError> {
        if depth > MAX_DEPTH {
            return Err(self.problem(format!("nested more than {MAX_DEPTH} deep")));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some('{') => self.items(depth, '}').map(Kind::Object)?,
            Some('[') => self.items(depth, ']').map(Kind::Array)?,
            Some('"' | '\'') => Kind::Text(self.string()?),
            Some('+' | '-' | '.' | '0'..='9') => Kind::Plain(self.number()?),
            Some(_) => Kind::Plain(self.word()?),
            None => return Err(self.unexpected("a value")),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn items(&mut self, depth: usize, close: char) -> Result<Vec<Item>, ParseError> {
        self.bump();
        let mut items = vec![];
        loop {
            self.skip_trivia()?;
            if self.eat(close) {
                return Ok(items);
            }
            let start = self.at;
            let key = if close == '}' {
                let key = self.key()?;
                self.skip_trivia()?;
                if !self.eat(':') {
                    return Err(self.unexpected("':'"));
                }
                self.skip_trivia()?;
                Some(key)
            } else {
                None
            };
            let value = self.value(depth + 1)?;
            self.skip_trivia()?;
            let comma = self.at;
            let comma = self.eat(',').then_some(comma);
            if comma.is_none() && self.peek() != Some(close) {
                return Err(self.unexpected(&format!("',' or '{close}'")));
            }
            items.push(Item { key, start, value, comma });
        }
    }

    fn key(&mut self) -> Result<String, ParseError> {
        if matches!(self.peek(), Some('"' | '\'')) {
            return self.string();
        }
        let mut name = String::new();
        loop {
            let before = self.at;
            let Some(mut c) = self.bump() else { break };
            if c == '\\' {
                c = self
                    .escaped_unit()
                    .and_then(|unit| char::from_u32(u32::from(unit)))
                    .ok_or_else(|| ParseError::at(self.text, before, "a key has an escape that is no letter"))?;
            }
            let starts = matches!(c, '$' | '_') || unicode_ident::is_xid_start(c);
            let goes_on = starts || matches!(c, '\u{200c}' | '\u{200d}') || unicode_ident::is_xid_continue(c);
            if !(starts || (goes_on && !name.is_empty())) {
                self.at = before;
                break;
            }
            name.push(c);
        }
        if name.is_empty() { Err(self.unexpected("a key")) } else { Ok(name) }
    }

    /// `u` and four hexadecimal digits, after a backslash.
    fn escaped_unit(&mut self) -> Option<u16> {
        if !self.eat('u') {
            return None;
        }
        let digits = self.text.get(self.at..self.at + 4)?;
        let unit = from_hex(digits)?;
        self.at += 4;
        u16::try_from(unit).ok()
    }

    fn string(&mut self) -> Result<String, ParseError> {
        let opened = self.at;
        let quote = self.bump();
        let mut text = String::new();
        // A high surrogate that waits for its low one.
        let mut high: Option<u16> = None;
        loop {
            let before = self.at;
            let Some(c) = self.bump() else {
                return Err(ParseError::at(self.text, opened, "this text has no closing quote"));
            };
            let unit = if Some(c) == quote {
                if high.is_some() {
                    text.push(char::REPLACEMENT_CHARACTER);
                }
                return Ok(text);
            } else if matches!(c, '\n' | '\r') {
                return Err(ParseError::at(self.text, before, "a line ends inside a text"));
            } else if c == '\\' {
                match self.escape(before)? {
                    Escape::Nothing => continue,
                    Escape::Char(c) => Err(c),
                    Escape::Unit(unit) => Ok(unit),
                }
            } else {
                Err(c)
            };
            if let (Some(first), Ok(second @ 0xdc00..=0xdfff)) = (high, unit) {
                high = None;
                text.extend(char::decode_utf16([first, second]).flatten());
                continue;
            }
            // JavaScript keeps a lone surrogate; here it becomes the replacement character.
            if high.take().is_some() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
            match unit {
                Ok(first @ 0xd800..=0xdbff) => high = Some(first),
                Ok(unit) => text.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER)),
                Err(c) => text.push(c),
            }
        }
    }

    fn escape(&mut self, began: usize) -> Result<Escape, ParseError> {
        let wrong = |what: &str| Err(ParseError::at(self.text, began, what));
        let rest = &self.text[self.at..];
        Ok(match rest.chars().next() {
            None => return wrong("the file ends inside an escape"),
            Some('u') => match self.escaped_unit() {
                Some(unit) => Escape::Unit(unit),
                None => return Err(ParseError::at(self.text, began, "\\u needs four hexadecimal digits")),
            },
            Some('x') => match rest.get(1..3).and_then(from_hex) {
                Some(code) => {
                    self.at += 3;
                    Escape::Unit(code as u16)
                }
                None => return wrong("\\x needs two hexadecimal digits"),
            },
            Some('1'..='9') => return wrong("a digit cannot be escaped"),
            Some('0') if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                return wrong("an octal escape is not allowed");
            }
            Some(c) => {
                self.at += c.len_utf8();
                match c {
                    '0' => Escape::Char('\0'),
                    'b' => Escape::Char('\u{8}'),
                    'f' => Escape::Char('\u{c}'),
                    'n' => Escape::Char('\n'),
                    'r' => Escape::Char('\r'),
                    't' => Escape::Char('\t'),
                    'v' => Escape::Char('\u{b}'),
                    '\r' => {
                        self.eat('\n');
                        Escape::Nothing
                    }
                    '\n' | '\u{2028}' | '\u{2029}' => Escape::Nothing,
                    other => Escape::Char(other),
                }
            }
        })
    }

    fn number(&mut self) -> Result<Value, ParseError> {
        let start = self.at;
        let negative = match self.peek() {
            Some(sign @ ('+' | '-')) => {
                self.bump();
                sign == '-'
            }
            _ => false,
        };
        if self.text[self.at..].starts_with(['I', 'N']) {
            return self.word();
        }
        let rest = &self.text[self.at..];
        if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
            let length = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
            if length == 0 {
                return Err(ParseError::at(self.text, start, "0x needs a digit"));
            }
            self.at += 2 + length;
            let digits = hex[..length].bytes().map(|b| f64::from((b as char).to_digit(16).unwrap_or(0)));
            let value = digits.fold(0.0, |sum: f64, digit| sum.mul_add(16.0, digit));
            return Ok(number(if negative { -value } else { value }));
        }
        let whole = self.digits();
        if whole > 1 && self.text[self.at - whole..].starts_with('0') {
            return Err(ParseError::at(self.text, start, "a number must not begin with 0"));
        }
        let part = if self.eat('.') { self.digits() } else { 0 };
        if whole + part == 0 {
            return Err(self.unexpected("a digit"));
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            self.bump();
            if !self.eat('+') {
                self.eat('-');
            }
            if self.digits() == 0 {
                return Err(self.unexpected("a digit"));
            }
        }
        let digits = self.text[start..self.at].trim_start_matches('+');
        match digits.parse::<f64>() {
            Ok(value) => Ok(number(value)),
            Err(_) => Err(ParseError::at(self.text, start, "this is no number")),
        }
    }

    fn digits(&mut self) -> usize {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        self.at += length;
        length
    }

    fn word(&mut self) -> Result<Value, ParseError> {
        const WORDS: [(&str, Value); 5] = [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            // JavaScript writes both as null in JSON.
            ("Infinity", Value::Null),
            ("NaN", Value::Null),
        ];
        let rest = &self.text[self.at..];
        for (word, value) in WORDS {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected("a value"))
    }
}

enum Escape {
    /// An escaped line break, which adds nothing to the text.
    Nothing,
    Char(char),
    Unit(u16),
}

fn from_hex(digits: &str) -> Option<u32> {
    // `from_str_radix` would accept a sign too.
    let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
    if all { u32::from_str_radix(digits, 16).ok() } else { None }
}

/// JavaScript has one type of number, so 18789.0 is 18789.
fn number(value: f64) -> Value {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    if value.fract() == 0.0 && value.abs() <= SAFE {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests;
