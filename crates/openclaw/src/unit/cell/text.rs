//! The cell in the text of a unit: whether there is one, what it says, and how to change its ports.

use base::GatewayPort;
use base::cell::Openings;

use super::super::text::is_ours;
use super::{CANNOT, LIMITS, MARK, OPEN, denied_ports};

/// What a unit file shows about the confinement of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// The platform did not write the unit, so it has no cell.
    Foreign,
    /// The platform wrote it before there were cells, or removed the cell.
    Unconfined,
    Confined,
}

impl Confinement {
    pub fn of(unit: &str) -> Confinement {
        match (is_ours(unit), is_in(unit)) {
            (false, _) => Confinement::Foreign,
            (true, false) => Confinement::Unconfined,
            (true, true) => Confinement::Confined,
        }
    }

    /// Parses a word of the sweep's output.
    pub fn parse(word: &str) -> Option<Confinement> {
        match word {
            "foreign" => Some(Confinement::Foreign),
            "unconfined" => Some(Confinement::Unconfined),
            "confined" => Some(Confinement::Confined),
            _ => None,
        }
    }
}

/// The lines of the cell in a unit's text; empty if it has no cell.
pub fn of_text(unit: &str) -> Vec<&str> {
    let lines = unit.lines().skip_while(|line| !line.starts_with(MARK)).skip(1);
    lines.take_while(|line| !line.is_empty() && !line.starts_with('[')).collect()
}

/// The text after the mark in a unit's text.
fn remarks(unit: &str) -> &str {
    unit.lines().find_map(|line| line.strip_prefix(MARK)).unwrap_or_default()
}

/// The keys that were left out of the cell in a unit's text.
pub fn left_out_of(unit: &str) -> Vec<&str> {
    let names = remarks(unit).split_once(CANNOT).and_then(|(_, names)| names.strip_suffix('.'));
    names.map(|names| names.split(", ").collect()).unwrap_or_default()
}

/// What the cell in a unit's text leaves open.
pub fn openings_of(unit: &str) -> Openings {
    let names = remarks(unit).strip_prefix(OPEN).and_then(|rest| rest.split('.').next());
    names.map(Openings::parse).unwrap_or_default()
}

/// Whether a unit's text has a cell.
fn is_in(unit: &str) -> bool {
    unit.lines().any(|line| line.starts_with(MARK))
}

/// Whether two texts of a unit differ only in limits.
pub fn differ_by_limits(one: &str, other: &str) -> bool {
    let rest = |text: &str| -> Vec<String> {
        let is_limit = |line: &&str| LIMITS.iter().any(|name| line.split('=').next() == Some(name));
        text.lines().filter(|line| !is_limit(line)).map(str::to_owned).collect()
    };
    is_in(one) && is_in(other) && one != other && rest(one) == rest(other)
}

/// A unit's text with `SocketBindDeny` for these ports: its own, and those of others. A text without a cell is not
/// changed.
pub fn with_ports(unit: &str, port: GatewayPort, others: &[i64]) -> String {
    const NAME: &str = "SocketBindDeny=";
    let denied: Vec<String> = denied_ports(port, others).into_iter().map(|value| format!("{NAME}{value}\n")).collect();
    let mut out = String::with_capacity(unit.len());
    let mut first = true;
    for line in unit.split_inclusive('\n') {
        if !line.starts_with(NAME) {
            out += line;
        } else if std::mem::take(&mut first) {
            out.extend(denied.iter().map(String::as_str));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Directive;
    use super::super::tests::cell;
    use super::*;

    #[test]
    fn a_unit_tells_its_cell() {
        let text = format!("# x\n[Service]\nUser=a\n{}\n[Install]\nWantedBy=b\n", cell().render().unwrap());
        let lines: Vec<String> = cell().directives().unwrap().iter().map(Directive::line).collect();
        assert_eq!(of_text(&text), lines);
        let ours = format!("# Written by tidepool.\n{text}");
        assert_eq!(Confinement::of(&ours), Confinement::Confined);
        assert_eq!(Confinement::of("# Written by tidepool.\n[Service]\nUser=a\n"), Confinement::Unconfined);
        assert_eq!(Confinement::of(&text), Confinement::Foreign);
        assert!(of_text("[Service]\nUser=a\n").is_empty());
        let more = text.replace("MemoryMax=2048M", "MemoryMax=4096M");
        assert!(differ_by_limits(&text, &more) && !differ_by_limits(&text, &text));
        assert!(!differ_by_limits(&text, &more.replace("PrivateTmp=yes", "PrivateTmp=no")));
        assert!(!differ_by_limits(&text, "[Service]\nUser=a\n"));
    }
}
