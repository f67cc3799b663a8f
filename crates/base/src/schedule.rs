//! Recurring times by the wall clock of the configured zone. A slot is the instant at which a job is due.
//!
//! When the clocks change, a daily time that is skipped moves forward by the length of the gap, and one that comes
//! twice counts the first time. Minutes are those of the local hour; a shift by a part of an hour makes one interval
//! shorter or longer, but no slot comes twice.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use crate::Zone;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Every this many seconds, from the full hour. Must divide an hour.
    Seconds(i64),
    /// Every `every` minutes, the first `past` minutes after the full hour. `every` must divide an hour.
    Minutes { every: i64, past: i64 },
    /// Once a local day.
    Daily { hour: i8, minute: i8 },
}

impl When {
    pub const fn minutes(every: i64) -> When {
        When::Minutes { every, past: 0 }
    }

    pub const fn hourly(past: i64) -> When {
        When::Minutes { every: 60, past }
    }

    /// The latest slot that is not after `now`.
    pub fn slot(self, zone: &Zone, now: Timestamp) -> Timestamp {
        match self {
            When::Seconds(every) => of_hour(zone.time_zone(), now, every.max(1), 0),
            When::Minutes { every, past } => of_hour(zone.time_zone(), now, every.max(1) * 60, past * 60),
            When::Daily { hour, minute } => {
                let today = zone.date(now);
                let at = |date: jiff::civil::Date| {
                    let zoned = date.at(hour, minute, 0, 0).to_zoned(zone.time_zone().clone());
                    zoned.map_or(Timestamp::MIN, |z| z.timestamp())
                };
                match at(today) {
                    slot if slot <= now => slot,
                    _ => at(today.saturating_sub(1.day())),
                }
            }
        }
    }

    /// For people: `every 5 minutes`.
    pub fn describe(self) -> String {
        match self {
            When::Seconds(every) => format!("every {every} s"),
            When::Minutes { every: 60, past } => format!("hourly at :{past:02}"),
            When::Minutes { every, past: 0 } => format!("every {every} min"),
            When::Minutes { every, past } => format!("every {every} min at :{past:02}"),
            When::Daily { hour, minute } => format!("daily at {hour:02}:{minute:02}"),
        }
    }
}

/// The latest local time that is `past` seconds plus a multiple of `every` after a full hour.
fn of_hour(zone: &TimeZone, now: Timestamp, every: i64, past: i64) -> Timestamp {
    let offset = i64::from(zone.to_offset(now).seconds());
    let local = now.as_second() + offset;
    let slot = (local - past).div_euclid(every) * every + past - offset;
    let slot = Timestamp::from_second(slot).unwrap_or(Timestamp::MIN);
    // If the clocks changed between the slot and now, the slot is the last one before the change, by the offset before
    // it. `preceding` excludes a change exactly at its argument, hence one millisecond more.
    let until_now = now.saturating_add(SignedDuration::from_millis(1)).unwrap_or(now);
    match zone.preceding(until_now).next() {
        Some(change) if slot < change.timestamp() && change.timestamp() <= now => {
            let before = change.timestamp() - SignedDuration::from_millis(1);
            let then = i64::from(zone.to_offset(before).seconds());
            let local = before.as_second() + then;
            let earlier = (local - past).div_euclid(every) * every + past - then;
            Timestamp::from_second(earlier).unwrap_or(Timestamp::MIN)
        }
        _ => slot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn zone(name: &str) -> Zone {
        Zone::named(name).unwrap()
    }

    /// Every slot of a span, as a scheduler that checks every ten seconds sees them.
    fn slots(when: When, zone: &Zone, from: &str, to: &str) -> Vec<String> {
        let (mut now, to) = (at(from), at(to));
        let mut seen: Vec<Timestamp> = vec![];
        while now < to {
            let slot = when.slot(zone, now);
            assert!(slot <= now);
            assert!(seen.last().is_none_or(|last| *last <= slot), "a slot never goes back");
            if seen.last() != Some(&slot) {
                seen.push(slot);
            }
            now += SignedDuration::from_secs(10);
        }
        seen.into_iter().map(|slot| zone.show(slot)[5..16].to_owned()).collect()
    }

    #[test]
    fn minutes_are_those_of_the_local_hour() {
        let kathmandu = zone("Asia/Kathmandu");
        let slot = When::hourly(5).slot(&kathmandu, at("2026-11-15T09:40:00Z"));
        assert_eq!(kathmandu.show(slot), "2026-11-15T15:05:00.000+05:45");
        let berlin = zone("Europe/Berlin");
        let slot = When::Minutes { every: 15, past: 2 }.slot(&berlin, at("2026-11-15T09:16:59Z"));
        assert_eq!(slot, at("2026-11-15T09:02:00Z"));
        assert_eq!(When::Seconds(5).slot(&berlin, at("2026-11-15T09:16:59.999Z")), at("2026-11-15T09:16:55Z"));
        assert_eq!(When::minutes(5).slot(&berlin, at("2026-11-15T09:15:00Z")), at("2026-11-15T09:15:00Z"));
    }

    #[test]
    fn a_day_has_its_slot_once_whatever_the_clocks_do() {
        let berlin = zone("Europe/Berlin");
        let daily = When::Daily { hour: 2, minute: 30 };
        // In spring 02:30 is skipped, in autumn it comes twice.
        let spring = slots(daily, &berlin, "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
        assert_eq!(spring, ["03-28T02:30", "03-29T03:30", "03-30T02:30"]);
        let autumn = slots(daily, &berlin, "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
        assert_eq!(autumn, ["10-24T02:30", "10-25T02:30", "10-26T02:30"]);
        // Beirut's day begins at 01:00.
        let beirut = slots(
            When::Daily { hour: 0, minute: 10 },
            &zone("Asia/Beirut"),
            "2026-03-28T12:00:00Z",
            "2026-03-30T12:00:00Z",
        );
        assert_eq!(beirut, ["03-28T00:10", "03-29T01:10", "03-30T00:10"]);
    }

    #[test]
    fn hours_go_on_through_a_change_of_the_clocks() {
        let berlin = zone("Europe/Berlin");
        let autumn = slots(When::hourly(5), &berlin, "2026-10-24T23:30:00Z", "2026-10-25T02:30:00Z");
        assert_eq!(autumn, ["10-25T01:05", "10-25T02:05", "10-25T02:05", "10-25T03:05"], "two real hours, two slots");
        // Lord Howe's clocks move by half an hour: no slot comes twice, and none goes backwards.
        let howe = zone("Australia/Lord_Howe");
        let spring = slots(When::hourly(20), &howe, "2026-10-03T13:00:00Z", "2026-10-03T18:00:00Z");
        assert_eq!(spring, ["10-03T23:20", "10-04T00:20", "10-04T01:20", "10-04T03:20", "10-04T04:20"]);
        let autumn = slots(When::hourly(50), &howe, "2026-04-04T12:30:00Z", "2026-04-04T18:00:00Z");
        assert_eq!(
            autumn,
            ["04-04T22:50", "04-04T23:50", "04-05T00:50", "04-05T01:50", "04-05T01:50", "04-05T02:50", "04-05T03:50"]
        );
    }
}
