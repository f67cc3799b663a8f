//! Spans of time, and how they are cut into whole days, quarters of an hour, and the rest.

use base::Zone;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

/// A quarter of an hour. The offset of every zone is a multiple of it, so days consist of whole slots.
pub const SLOT_MS: i64 = 15 * 60 * 1000;

/// The beginning of the quarter of an hour that an instant lies in.
pub fn slot_of(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond().div_euclid(SLOT_MS) * SLOT_MS).unwrap_or(at)
}

/// A span of time: from an instant (inclusive; `None`: from the beginning) to another (exclusive; `None`: without end).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    /// Rows of exactly this instant belong to the span, although it is before `from`.
    pub also: Option<Timestamp>,
    /// Rows of exactly this instant do not belong to the span, although it is before `to`, within the same quarter of
    /// an hour.
    pub except: Option<Timestamp>,
}

impl Span {
    /// The part between two instants; `None` if there is none.
    pub fn within(self, from: Option<Timestamp>, to: Option<Timestamp>) -> Option<Span> {
        let is_between = |at: &Timestamp| from.is_none_or(|from| from <= *at) && to.is_none_or(|to| *at < to);
        let also = self.also.filter(is_between);
        let (from, to) = (self.from.max(from), [self.to, to].into_iter().flatten().min());
        let contains = |at: &Timestamp| from.is_none_or(|from| from <= *at) && to.is_none_or(|to| *at < to);
        let except = self.except.filter(|at| contains(at) || also == Some(*at));
        let is_empty = matches!((from, to), (Some(from), Some(to)) if from >= to);
        (!is_empty || also.is_some()).then_some(Span { from, to, also, except })
    }
}

/// The beginning of the second that an instant lies in. Some gateways log whole seconds: a row with this time may be of
/// any moment within the second.
pub fn second_of(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_millisecond().div_euclid(1000)).unwrap_or(at)
}

/// A span cut into whole days, whole quarters of an hour, and single rows at its ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    pub days: Option<(Option<Date>, Option<Date>)>,
    pub slots: Vec<(Timestamp, Timestamp)>,
    pub rows: Vec<(Timestamp, Timestamp)>,
    /// Rows to subtract: those before the span's beginning, within its first quarter of an hour. They are in the past,
    /// while the number after the beginning grows with every request of a busy key.
    pub less: Vec<(Timestamp, Timestamp)>,
}

impl Cut {
    /// The same with quarters of an hour in place of days, for use while the days are of another zone.
    pub fn without_days(mut self, zone: &Zone) -> Cut {
        if let Some((first, last)) = self.days.take() {
            let begin = |date: Option<Date>, else_at| date.map_or(else_at, |date| zone.span(date).0);
            push(&mut self.slots, begin(first, Timestamp::MIN), begin(last, Timestamp::MAX));
        }
        self
    }
}

pub(super) fn cut(zone: &Zone, span: Span) -> Cut {
    let mut cut = cut_plain(zone, span);
    let one = |at: Timestamp| (at, at + SignedDuration::from_millis(1));
    if let Some(except) = span.except {
        let (from, to) = one(except);
        let around = |(a, b): (Timestamp, Timestamp)| {
            if a <= from && to <= b { vec![(a, from), (to, b)] } else { vec![(a, b)] }
        };
        cut.rows = cut.rows.into_iter().flat_map(around).filter(|(a, b)| a < b).collect();
    }
    cut.rows.extend(span.also.filter(|also| span.except != Some(*also)).map(one));
    cut
}

fn cut_plain(zone: &Zone, span: Span) -> Cut {
    let mut cut = Cut::default();
    if let (Some(from), Some(to)) = (span.from, span.to)
        && from >= to
    {
        return cut;
    }
    let first = span.from.map(slot_of);
    let last = span.to.map(slot_of);
    if let (Some(from), Some(to)) = (span.from, span.to)
        && first == last
    {
        // Both ends lie within one quarter of an hour.
        cut.rows.push((from, to));
        return cut;
    }
    if let (Some(from), Some(first)) = (span.from, first)
        && first < from
    {
        cut.less.push((first, from));
    }
    if let (Some(last), Some(to)) = (last, span.to)
        && last < to
    {
        cut.rows.push((last, to));
    }
    let day_from = first.map(|first| match zone.midnight(first) {
        midnight if midnight == first => midnight,
        _ => zone.next_midnight(first),
    });
    let day_to = last.map(|last| zone.midnight(last));
    match (first, day_from, last, day_to) {
        (Some(first), Some(day_from), Some(last), Some(day_to)) if day_from > day_to => {
            push(&mut cut.slots, first, last);
        }
        _ => {
            if let (Some(first), Some(day_from)) = (first, day_from) {
                push(&mut cut.slots, first, day_from);
            }
            if let (Some(day_to), Some(last)) = (day_to, last) {
                push(&mut cut.slots, day_to, last);
            }
            cut.days = Some((day_from.map(|at| zone.date(at)), day_to.map(|at| zone.date(at))));
        }
    }
    cut
}

fn push(spans: &mut Vec<(Timestamp, Timestamp)>, from: Timestamp, to: Timestamp) {
    if from < to {
        spans.push((from, to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn single_instants_are_taken_in_and_left_out() {
        let zone = Zone::named("UTC").unwrap();
        let (from, to) = (at("2026-11-01T10:07:00.300Z"), at("2026-11-01T10:08:00.700Z"));
        let (first, last) = (second_of(from), second_of(to));
        let plain = Span { from: Some(from), to: Some(to), ..Span::default() };
        let ms = SignedDuration::from_millis(1);
        let with = cut(&zone, Span { also: Some(first), except: Some(last), ..plain });
        assert_eq!(with.rows, [(from, last), (last + ms, to), (first, first + ms)]);
        // The same second at both ends: its rows belong to the next binding.
        let (from, to) = (at("2026-11-01T10:07:00.300Z"), at("2026-11-01T10:07:00.700Z"));
        let second = Some(second_of(from));
        let short = Span { from: Some(from), to: Some(to), also: second, except: second };
        assert_eq!(cut(&zone, short).rows, [(from, to)]);
        // The excluded second is the beginning of a quarter of an hour.
        let to = at("2026-11-01T10:15:00.700Z");
        let over = cut(&zone, Span { from: Some(from), to: Some(to), except: Some(second_of(to)), ..Span::default() });
        assert_eq!(over.rows, [(at("2026-11-01T10:15:00.001Z"), to)]);
        assert_eq!(over.less, [(at("2026-11-01T10:00:00Z"), from)]);
    }

    #[test]
    fn a_span_is_days_quarters_and_rows() {
        let zone = Zone::named("Asia/Kathmandu").unwrap();
        let span =
            Span { from: Some(at("2026-11-01T10:07:00Z")), to: Some(at("2026-11-03T10:15:00Z")), ..Span::default() };
        let cut = cut(&zone, span);
        assert_eq!(cut.rows, []);
        assert_eq!(cut.less, [(at("2026-11-01T10:00:00Z"), at("2026-11-01T10:07:00Z"))]);
        assert_eq!(
            cut.slots,
            [
                (at("2026-11-01T10:00:00Z"), at("2026-11-01T18:15:00Z")),
                (at("2026-11-02T18:15:00Z"), at("2026-11-03T10:15:00Z")),
            ]
        );
        let day = |d| Some(jiff::civil::date(2026, 11, d));
        assert_eq!(cut.days, Some((day(2), day(3))), "the second of November alone");
    }

    proptest! {
        /// The parts cover the span once, without gaps.
        #[test]
        fn the_parts_of_a_span_are_the_span(from in 1_790_000_000_000i64..1_800_000_000_000, length in 0i64..400_000_000,
            zone in prop::sample::select(vec!["UTC", "Asia/Kathmandu", "Europe/Berlin", "America/St_Johns", "Asia/Beirut", "Pacific/Chatham"])) {
            let zone = Zone::named(zone).unwrap();
            let time = |ms| Timestamp::from_millisecond(ms).unwrap();
            let span = Span { from: Some(time(from)), to: Some(time(from + length)), ..Span::default() };
            let cut = cut(&zone, span);
            let mut parts: Vec<(Timestamp, Timestamp)> = cut.slots.iter().chain(&cut.rows).copied().collect();
            if let Some((Some(first), Some(last))) = cut.days && first < last {
                parts.push((zone.start(first), zone.start(last)));
            }
            parts.sort();
            for (start, end) in cut.less {
                prop_assert_eq!(parts[0].0, start);
                parts[0].0 = end;
            }
            let mut reached = time(from);
            for (start, end) in parts {
                prop_assert_eq!(start, reached);
                reached = end;
            }
            prop_assert_eq!(reached, time(from + length));
        }
    }
}
