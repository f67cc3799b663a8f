//! Reads the file of an import: which columns it has, and whom each line describes. Nothing is looked up here.

use std::collections::HashMap;

use base::{Email, Error, Result, Secret, Text, password};
use csv::{ReaderBuilder, StringRecord};

use super::refusal::{Reason, Refusal};

/// How many lines a file may have: enough for a department, and answered within a minute even if each has a password.
pub const MOST_LINES: usize = 2_000;
/// The size of a file. A body of JSON may be 1 MiB, and JSON takes more room than the text itself.
pub const MOST_BYTES: usize = 512 << 10;

/// A file that could be read. A line that could not says why.
#[derive(Debug)]
pub struct File {
    pub rows: Vec<Row>,
    /// The columns whose name is not known, as the file writes them.
    pub ignored_columns: Vec<String>,
}

#[derive(Debug)]
pub struct Row {
    /// As a text editor counts, from 1.
    pub line: u64,
    /// The cell as it is written, also if it is not an address; empty if it goes over several lines.
    pub email: String,
    pub person: Result<Person, Refusal>,
}

/// What a line says about somebody. An empty cell says nothing.
#[derive(Debug)]
pub struct Person {
    pub email: Email,
    pub name: Option<String>,
    pub department: Option<String>,
    pub quota_daily: Option<i64>,
    /// The code or the name of a profession.
    pub profession: Option<String>,
    pub password: Option<Secret>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Column {
    Email,
    Name,
    Department,
    Quota,
    Profession,
    Password,
}

impl Column {
    /// Case, spaces, `-` and `_` make no difference. The console's own exports are understood in both languages.
    fn named(header: &str) -> Option<Column> {
        let plain: String = header.chars().filter(|c| !c.is_whitespace() && !matches!(c, '-' | '_')).collect();
        match plain.to_lowercase().as_str() {
            "email" | "emailaddress" | "mail" | "邮箱" | "电子邮箱" | "电子邮件" => Some(Column::Email),
            "name" | "fullname" | "姓名" => Some(Column::Name),
            "department" | "dept" | "部门" => Some(Column::Department),
            "quota" | "quotadaily" | "dailyquota" | "配额" | "每日配额" => Some(Column::Quota),
            "profession" | "职业" | "岗位" => Some(Column::Profession),
            "password" | "密码" => Some(Column::Password),
            _ => None,
        }
    }
}

/// The first line names the columns, in any order. Cells are separated by commas, semicolons or tabs.
pub fn read(text: &Secret) -> Result<File> {
    let text = text.expose();
    if text.len() > MOST_BYTES {
        return Err(Error::field("csv", format_args!("must have at most {} KiB; split the file", MOST_BYTES >> 10)));
    }
    // The csv crate counts a line that ends with CR LF only when it reads the next one.
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    let records = records(&text)?;
    let mut records = records.into_iter();
    let Some((_, header)) = records.next() else {
        return Err(Error::field("csv", "is empty"));
    };
    let (columns, ignored_columns) = read_header(&header)?;
    if records.len() > MOST_LINES {
        let problem = format!("has {} lines, and may have {MOST_LINES}; split the file", records.len());
        return Err(Error::field("csv", problem));
    }
    let mut first_lines: HashMap<String, u64> = HashMap::new();
    let mut rows = vec![];
    for (line, record) in records {
        let row = Cells { columns: &columns, width: header.len(), record: &record };
        let mut person = row.person();
        // Where a quote is missing, the cell has swallowed further lines, with whatever secrets they have.
        let email = Some(row.get(Column::Email)).filter(|cell| !cell.contains('\n')).unwrap_or_default().to_owned();
        match first_lines.get(&Email::key_of(&email)) {
            Some(first) if !email.is_empty() => {
                person = Err(Refusal::new(Reason::Duplicate, format!("email: line {first} has the same address")));
            }
            _ => drop(first_lines.insert(Email::key_of(&email), line)),
        }
        rows.push(Row { line, email, person });
    }
    Ok(File { rows, ignored_columns })
}

/// All records that are not empty, each with the number of its line.
fn records(text: &str) -> Result<Vec<(u64, StringRecord)>> {
    // With a line break at the end, a cell whose quote is never closed contains one, and is refused for that.
    let source = format!("{text}\n");
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter(text))
        .from_reader(source.as_bytes());
    let mut records = vec![];
    let (mut line, mut counted_to) = (1, 0);
    for record in reader.records() {
        let record = record.map_err(Error::internal)?;
        // The position of a record is before the empty lines that precede it.
        let at = record.position().map_or(0, |position| position.byte());
        let at = usize::try_from(at).map_err(Error::internal)?;
        let at = at + source[at..].bytes().take_while(|byte| *byte == b'\n').count();
        line += count_breaks(&source[counted_to..at]);
        counted_to = at;
        if record.iter().any(|cell| !cell.trim().is_empty()) {
            records.push((line, record));
        }
    }
    Ok(records)
}

fn count_breaks(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// The separator that the first line has most of, outside of quotes.
fn delimiter(text: &str) -> u8 {
    let header = text.trim_start_matches('\n').split('\n').next().unwrap_or_default();
    let count = |delimiter: u8| {
        let mut quoted = false;
        header
            .bytes()
            .filter(|byte| {
                quoted ^= *byte == b'"';
                !quoted && *byte == delimiter
            })
            .count()
    };
    // Of equals the last is chosen, so the comma stands there.
    [b'\t', b';', b','].into_iter().max_by_key(|delimiter| count(*delimiter)).unwrap_or(b',')
}

/// Which column stands where, and the names of those that are not used.
fn read_header(header: &StringRecord) -> Result<(HashMap<Column, usize>, Vec<String>)> {
    let mut columns = HashMap::new();
    let mut ignored = vec![];
    if header.iter().any(|name| name.contains('\n')) {
        return Err(Error::field("csv", "a quote in the first line is never closed"));
    }
    for (place, name) in header.iter().map(str::trim).enumerate() {
        match Column::named(name) {
            Some(column) => {
                if columns.insert(column, place).is_some() {
                    return Err(Error::field("csv", format_args!("has two columns for the same: {name:?}")));
                }
            }
            None if name.is_empty() => {}
            None => ignored.push(name.to_owned()),
        }
    }
    if !columns.contains_key(&Column::Email) {
        return Err(Error::field("csv", "the first line must name the columns, and one of them must be \"email\""));
    }
    Ok((columns, ignored))
}

/// The cells of one line.
struct Cells<'a> {
    columns: &'a HashMap<Column, usize>,
    /// How many cells the first line has.
    width: usize,
    record: &'a StringRecord,
}

impl Cells<'_> {
    /// Without white space around it; empty if the line is too short.
    fn get(&self, column: Column) -> &str {
        let place = self.columns.get(&column);
        let cell = place.and_then(|place| self.record.get(*place)).unwrap_or_default().trim();
        // The apostrophe that our own exports put in front of what a spreadsheet would run as a formula.
        match cell.strip_prefix('\'') {
            Some(original) if original.starts_with(['=', '+', '-', '@']) => original,
            _ => cell,
        }
    }

    fn given(&self, column: Column) -> Option<&str> {
        Some(self.get(column)).filter(|cell| !cell.is_empty())
    }

    fn person(&self) -> Result<Person, Refusal> {
        if self.record.iter().any(|cell| cell.contains('\n')) {
            let message = "a cell goes over several lines; a closing quote may be missing";
            return Err(Refusal::new(Reason::Cells, message));
        }
        if self.record.iter().skip(self.width).any(|cell| !cell.trim().is_empty()) {
            let message = "has more cells than the first line; put a cell that contains a separator in quotes";
            return Err(Refusal::new(Reason::Cells, message));
        }
        let email =
            self.get(Column::Email).parse().map_err(|error: Error| Refusal::new(Reason::Email, error.client))?;
        let name = self.text(Column::Name).map_err(|problem| Refusal::field(Reason::Text, "name", problem))?;
        let department = self.text(Column::Department);
        let department = department.map_err(|problem| Refusal::field(Reason::Text, "department", problem))?;
        let quota_daily = self.given(Column::Quota).map(|cell| read_quota(cell).ok_or_else(bad_quota)).transpose()?;
        let password = self.given(Column::Password).map(Secret::new);
        if let Some(password) = &password {
            password::check("password", password).map_err(|e| Refusal::new(Reason::Password, e.client))?;
        }
        let profession = self.given(Column::Profession).map(str::to_owned);
        Ok(Person { email, name, department, quota_daily, profession, password })
    }

    /// With the limit that names and departments have everywhere.
    fn text(&self, column: Column) -> Result<Option<String>, String> {
        let text = self.given(column).map(Text::<100>::parse).transpose()?;
        Ok(text.map(Into::into))
    }
}

fn bad_quota() -> Refusal {
    let problem = "must be a whole number of tokens a day; 0 means no limit, and an empty cell changes nothing";
    Refusal::field(Reason::Quota, "quota", problem)
}

/// A whole number of 0 or more. Its digits may be grouped by threes with commas or spaces. A dot is refused, because
/// `1.000` is one to some people and a thousand to others.
fn read_quota(cell: &str) -> Option<i64> {
    let groups: Vec<&str> = cell.split([',', ' ', '\u{a0}', '\u{202f}']).collect();
    let (first, others) = groups.split_first()?;
    let grouped = others.is_empty() || (1..=3).contains(&first.len()) && others.iter().all(|group| group.len() == 3);
    let digits = groups.concat();
    (grouped && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str) -> Vec<Row> {
        read(&Secret::new(text)).unwrap().rows
    }

    /// The only line after the header `email,name,department,quota,profession,password`.
    fn person(line: &str) -> Result<Person, Reason> {
        let mut rows = rows(&format!("email,name,department,quota,profession,password\n{line}\n"));
        assert_eq!(rows.len(), 1);
        rows.remove(0).person.map_err(|refusal| refusal.reason)
    }

    fn refused_file(text: &str) -> String {
        read(&Secret::new(text)).unwrap_err().client.into()
    }

    #[test]
    fn columns_are_found_by_their_names_in_any_order() {
        let text = "Dept; E-Mail ;Daily quota;Notes;姓名\nSales;ada@example.test;5000;tall;Ada\n";
        let file = read(&Secret::new(text)).unwrap();
        assert_eq!(file.ignored_columns, ["Notes"]);
        let ada = file.rows[0].person.as_ref().unwrap();
        assert_eq!(
            (ada.name.as_deref(), ada.department.as_deref(), ada.quota_daily, ada.profession.as_deref()),
            (Some("Ada"), Some("Sales"), Some(5000), None)
        );
    }

    #[test]
    fn commas_semicolons_and_tabs_separate_cells() {
        for separator in [",", ";", "\t"] {
            let text = format!("email{separator}name\na@b.test{separator}Ann");
            assert_eq!(rows(&text)[0].person.as_ref().unwrap().name.as_deref(), Some("Ann"), "{separator:?}");
        }
        let text = "email;\"name, first\";department\na@b.test;Lee, Ann;Ops";
        assert_eq!(
            rows(text)[0].person.as_ref().unwrap().department.as_deref(),
            Some("Ops"),
            "the quoted comma counts"
        );
        assert!(rows("email\na@b.test")[0].person.is_ok(), "a file with one column has no separator");
    }

    #[test]
    fn a_byte_order_mark_and_any_kind_of_line_break_are_taken() {
        for text in ["\u{feff}email,name\r\na@b.test,Ann\r\n", "email,name\ra@b.test,Ann\r"] {
            let rows = rows(text);
            assert_eq!((rows.len(), rows[0].line), (1, 2), "{text:?}");
            assert!(rows[0].person.is_ok(), "{text:?}");
        }
    }

    #[test]
    fn quoted_cells_may_hold_separators_and_quotes() {
        let ann = person("a@b.test,\"Lee, \"\"Annie\"\" Ann\",Ops").unwrap();
        assert_eq!(ann.name.as_deref(), Some("Lee, \"Annie\" Ann"));
    }

    #[test]
    fn lines_are_numbered_as_an_editor_numbers_them() {
        for line_break in ["\n", "\r\n"] {
            let text = ["", "email,name", "", "a@b.test,Ann", ",", "", "b@b.test,Bob"].join(line_break);
            let lines: Vec<u64> = rows(&text).iter().map(|row| row.line).collect();
            assert_eq!(lines, [4, 7], "{line_break:?}");
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_is_refused_and_hides_nobody_before_it() {
        let text = "email,name\na@b.test,Ann\nb@b.test,\"Bob\nc@b.test,Cy\n";
        let rows = rows(text);
        assert!(rows[0].person.is_ok());
        assert_eq!((rows[1].line, rows[1].person.as_ref().unwrap_err().reason), (3, Reason::Cells));
        let text = "email,name\na@b.test,\"Ann";
        assert_eq!(self::rows(text)[0].person.as_ref().unwrap_err().reason, Reason::Cells, "in the last line too");
        let text = "email,notes\na@b.test,\"never closed\nb@b.test,x";
        assert!(self::rows(text)[0].person.is_err(), "in a column that is not used too");
        let text = "email,password\n\"a@b.test,ann's password\nb@b.test,bob's password";
        assert_eq!(self::rows(text)[0].email, "", "it would show the passwords");
        assert_eq!(refused_file("email,\"name\na@b.test,Ann"), "csv: a quote in the first line is never closed");
    }

    #[test]
    fn a_line_with_more_cells_than_columns_is_refused() {
        assert_eq!(person("a@b.test,Ann,Ops,1,,,000").unwrap_err(), Reason::Cells, "a comma without quotes");
        assert!(person("a@b.test,Ann,Ops,1,,,,").is_ok(), "spreadsheets add empty cells");
        assert!(person("a@b.test,Ann").is_ok(), "cells that are missing are empty");
    }

    #[test]
    fn empty_cells_say_nothing() {
        let ann = person(" a@b.test , , ,  ,,").unwrap();
        assert_eq!(ann.email.as_str(), "a@b.test");
        assert!(ann.name.is_none() && ann.department.is_none() && ann.quota_daily.is_none());
        assert!(ann.profession.is_none() && ann.password.is_none());
    }

    #[test]
    fn cells_that_cannot_be_taken_are_refused_with_their_reason() {
        let long = "x".repeat(101);
        for (line, reason) in [
            ("nobody", Reason::Email),
            (",Ann", Reason::Email),
            ("a@b.test,,,-1", Reason::Quota),
            ("a@b.test,,,100k", Reason::Quota),
            ("a@b.test,,,1.000", Reason::Quota),
            ("a@b.test,,,1e3", Reason::Quota),
            ("a@b.test,,,\"1,00\"", Reason::Quota),
            ("a@b.test,,,99999999999999999999", Reason::Quota),
            ("a@b.test,,,,,short", Reason::Password),
            (&format!("a@b.test,{long}"), Reason::Text),
            (&format!("a@b.test,,{long}"), Reason::Text),
            ("a@b.test,a\0b", Reason::Text),
        ] {
            assert_eq!(person(line).unwrap_err(), reason, "{line}");
        }
    }

    #[test]
    fn a_quota_may_be_grouped() {
        for (cell, quota) in
            [("0", 0), ("5000", 5000), ("1,000", 1000), ("1 000 000", 1_000_000), ("12\u{202f}000", 12_000)]
        {
            assert_eq!(person(&format!("a@b.test,,,\"{cell}\"")).unwrap().quota_daily, Some(quota), "{cell}");
        }
    }

    #[test]
    fn an_address_stands_in_one_line_whatever_its_case() {
        let rows = rows("email,quota\na@b.test,x\n A@B.test ,5\n,\nc@b.test,\n");
        let reasons: Vec<_> = rows.iter().map(|row| row.person.as_ref().err().map(|r| r.reason)).collect();
        assert_eq!(reasons, [Some(Reason::Quota), Some(Reason::Duplicate), None]);
        assert_eq!(rows[1].person.as_ref().unwrap_err().message, "email: line 2 has the same address");
    }

    #[test]
    fn lines_without_an_address_are_not_duplicates_of_each_other() {
        let rows = rows("email,name\n,Ann\n,Bob\n");
        assert!(rows.iter().all(|row| row.person.as_ref().unwrap_err().reason == Reason::Email));
    }

    #[test]
    fn what_an_export_guards_against_formulas_is_read_back() {
        let ann = person("a@b.test,'t Hooft,'-,'5").unwrap_err();
        assert_eq!(ann, Reason::Quota, "other apostrophes belong to the text");
        let ann = person("'+a@b.test,'t Hooft,'-").unwrap();
        assert_eq!((ann.email.as_str(), ann.name.as_deref()), ("+a@b.test", Some("'t Hooft")));
        assert_eq!(ann.department.as_deref(), Some("-"));
    }

    #[test]
    fn a_file_without_an_address_column_or_with_two_is_refused() {
        for text in ["a@b.test,Ann", "name,department\nAnn,Ops"] {
            assert!(refused_file(text).contains("must be \"email\""), "{text}");
        }
        assert_eq!(refused_file("email,name,E-Mail\na@b.test,Ann,"), "csv: has two columns for the same: \"E-Mail\"");
        for text in ["", "\n\n", ",,\n"] {
            assert_eq!(refused_file(text), "csv: is empty", "{text:?}");
        }
        assert!(rows("email,name\n").is_empty(), "a header alone is a file without lines");
    }

    #[test]
    fn a_file_has_a_limit_of_lines_and_of_bytes() {
        let of = |lines: usize| {
            let lines: Vec<String> = (0..lines).map(|i| format!("p{i}@b.test")).collect();
            format!("email\n{}", lines.join("\n"))
        };
        assert_eq!(rows(&of(MOST_LINES)).len(), MOST_LINES);
        let message = refused_file(&of(MOST_LINES + 1));
        assert_eq!(message, "csv: has 2001 lines, and may have 2000; split the file");
        assert!(refused_file(&"x".repeat(MOST_BYTES + 1)).contains("512 KiB"));
    }

    proptest! {
        #[test]
        fn no_text_makes_reading_panic(text in "(email)?[,;\t\"'\r\n a@.]{0,60}", more in ".*") {
            let _ = read(&Secret::new(format!("{text}{more}")));
        }

        #[test]
        fn every_line_is_found_with_its_number(
            people in prop::collection::vec(("[a-z]{1,8}", "[^\r\n\0]{0,30}", 0usize..3), 1..20),
            separator in prop::sample::select(vec![",", ";", "\t"]),
        ) {
            let quoted = |cell: &str| format!("\"{}\"", cell.replace('"', "\"\""));
            let mut text = format!("email{separator}name\r\n");
            let (mut line, mut expected) = (1, vec![]);
            for (number, (local, name, empty)) in people.iter().enumerate() {
                text.push_str(&"\r\n".repeat(*empty));
                line += *empty as u64 + 1;
                expected.push((line, format!("{local}{number}@b.test"), name.trim().to_owned()));
                text.push_str(&format!("{local}{number}@b.test{separator}{}\r\n", quoted(name)));
            }
            let read = rows(&text);
            prop_assert_eq!(read.len(), expected.len());
            for (row, (line, email, name)) in read.iter().zip(expected) {
                prop_assert_eq!((row.line, &row.email), (line, &email));
                let unguarded = name.strip_prefix('\'').filter(|n| n.starts_with(['=', '+', '-', '@'])).unwrap_or(&name);
                prop_assert_eq!(row.person.as_ref().unwrap().name.as_deref().unwrap_or_default(), unguarded);
            }
        }
    }
}
