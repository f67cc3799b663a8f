//! Local days: "midnight", "this week" and "this month" in the company's time zone.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::{Error, Result};

/// The zone in which days begin.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

impl Zone {
    pub const UTC: Zone = Zone(TimeZone::UTC);

    /// The zone of an IANA name such as `Europe/Berlin`.
    pub fn named(name: &str) -> Result<Zone> {
        TimeZone::get(name).map(Zone).map_err(|e| Error::field("timezone", e))
    }

    pub fn system() -> Zone {
        Zone(TimeZone::system())
    }

    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("local")
    }

    pub(crate) fn time_zone(&self) -> &TimeZone {
        &self.0
    }

    pub fn date(&self, at: Timestamp) -> Date {
        at.to_zoned(self.0.clone()).date()
    }

    /// The first instant of a date. Where the clocks skip midnight, the first instant after the gap.
    pub fn start(&self, date: Date) -> Timestamp {
        date.to_zoned(self.0.clone()).map_or(Timestamp::MIN, |z| z.timestamp())
    }

    /// The start of a date (inclusive) and its end (exclusive).
    pub fn span(&self, date: Date) -> (Timestamp, Timestamp) {
        (self.start(date), self.start(date.saturating_add(1.day())))
    }

    pub fn midnight(&self, at: Timestamp) -> Timestamp {
        self.start(self.date(at))
    }

    pub fn next_midnight(&self, at: Timestamp) -> Timestamp {
        self.span(self.date(at)).1
    }

    /// Monday, 00:00.
    pub fn week(&self, at: Timestamp) -> Timestamp {
        let date = self.date(at);
        let back = date.weekday().since(Weekday::Monday);
        self.start(date.saturating_sub(i64::from(back).days()))
    }

    /// The first of the month, 00:00.
    pub fn month(&self, at: Timestamp) -> Timestamp {
        self.start(self.date(at).first_of_month())
    }

    /// A time as API responses show it: RFC 3339 with this zone's offset, to the millisecond.
    pub fn show(&self, at: Timestamp) -> String {
        let rounded = at.as_millisecond() * 1_000_000;
        let at = Timestamp::from_nanosecond(i128::from(rounded)).unwrap_or(at);
        let zoned = at.to_zoned(self.0.clone());
        format!("{:.3}", at.display_with_offset(zoned.offset()))
    }

    /// Two local days, both inclusive, as a start (inclusive) and an end (exclusive).
    pub fn range(&self, first: Option<Date>, last: Option<Date>) -> (Option<Timestamp>, Option<Timestamp>) {
        (first.map(|d| self.start(d)), last.map(|d| self.span(d).1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn days_on_the_two_odd_days_of_a_year_have_23_and_25_hours() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        let hours = |d| {
            let (a, b) = berlin.span(d);
            b.duration_since(a).as_hours()
        };
        assert_eq!(hours(date(2026, 3, 29)), 23);
        assert_eq!(hours(date(2026, 10, 25)), 25);
        assert_eq!(hours(date(2026, 7, 1)), 24);
    }

    #[test]
    fn a_day_without_midnight_begins_after_the_gap() {
        // Beirut moves its clocks at midnight: 2026-03-29 begins at 01:00.
        let beirut = Zone::named("Asia/Beirut").unwrap();
        let (start, end) = beirut.span(date(2026, 3, 29));
        assert_eq!(beirut.date(start), date(2026, 3, 29));
        assert_eq!(end.duration_since(start).as_hours(), 23);
    }

    #[test]
    fn weeks_begin_on_monday_and_months_on_the_first() {
        let zone = Zone::named("Asia/Kathmandu").unwrap();
        let sunday: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        assert_eq!(zone.date(zone.week(sunday)), date(2026, 11, 9));
        assert_eq!(zone.date(zone.month(sunday)), date(2026, 11, 1));
        assert_eq!(zone.show(zone.midnight(sunday)), "2026-11-15T00:00:00.000+05:45");
    }
}
