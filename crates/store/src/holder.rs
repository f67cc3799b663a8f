//! Whose a request is: whoever held its instance when it was made, and the department that they had then.
//!
//! What was made before an instance's first binding belongs to its first holder, and what was made between two bindings
//! to nobody. Some gateways log whole seconds: a row of exactly the second in which a binding began belongs to it, and
//! if several began in that second, to the last of them.

use std::collections::HashMap;

use base::id::{InstanceId, UserId};
use jiff::Timestamp;

use crate::db::Value;
use crate::usage::{Span, second_of};
use crate::user_department::{Membership, Memberships};
use crate::{Db, Result, args, record};

record! {
    /// The period of a binding, ended or not.
    #[derive(Clone, Debug)]
    pub struct Period {
        pub user_id: UserId,
        pub instance_id: InstanceId,
        pub created_at: Timestamp,
        pub ended_at: Option<Timestamp>,
    }
}

/// Which instances' periods to read.
#[derive(Clone, Copy, Debug)]
pub enum Among<'a> {
    All,
    /// Those that the user has or had.
    HeldBy(&'a UserId),
    /// Those that somebody has or had who was ever in the department.
    HeldIn(&'a str),
    Instances(&'a [String]),
}

/// The periods of instances, each instance's in order of time.
pub type Periods = HashMap<String, Vec<Period>>;

/// All periods of these instances, those of other holders included.
pub async fn periods(db: &Db, among: Among<'_>) -> Result<Periods> {
    let (clause, args) = match among {
        Among::All => (String::new(), args![]),
        Among::HeldBy(user) => {
            (" WHERE instance_id IN (SELECT o.instance_id FROM binding o WHERE o.user_id = ?)".into(), args![user])
        }
        Among::HeldIn(department) => (
            " WHERE instance_id IN (SELECT o.instance_id FROM binding o WHERE o.user_id IN \
             (SELECT u.id FROM users u WHERE u.department = ? UNION SELECT d.user_id FROM user_department d WHERE d.department = ?))"
                .into(),
            args![department, department],
        ),
        Among::Instances([]) => return Ok(Periods::new()),
        Among::Instances(instances) => {
            let marks = vec!["?"; instances.len()].join(", ");
            (format!(" WHERE instance_id IN ({marks})"), instances.iter().map(Value::from).collect())
        }
    };
    let sql = format!("SELECT user_id, instance_id, created_at, ended_at FROM binding{clause} ORDER BY created_at, id");
    let mut all = Periods::new();
    for period in db.all::<Period>(&sql, args).await? {
        all.entry(period.instance_id.to_string()).or_default().push(period);
    }
    Ok(all)
}

/// Who held an instance when a row of this time was logged.
pub fn at(periods: &[Period], time: Timestamp) -> Option<&Period> {
    let has_begun = |period: &&Period| period.created_at <= time || second_of(period.created_at) == time;
    let latest = periods.iter().rfind(has_begun).or(periods.first())?;
    latest.ended_at.is_none_or(|end| time < end).then_some(latest)
}

/// A part of an instance's time with one holder, or with none.
#[derive(Clone, Debug)]
pub struct Part {
    pub span: Span,
    pub user: Option<UserId>,
    /// The holder's department, where it was looked for.
    pub department: Option<String>,
}

/// An instance's time from beginning to end, cut wherever its holder changes, and with `memberships` wherever the
/// holder's department does. Each row of the log is in one part. Bindings may overlap where the clocks of replicas differ:
/// each counts until the next one begins.
pub fn parts(periods: &[Period], memberships: Option<&Memberships>) -> Vec<Part> {
    if periods.is_empty() {
        return vec![Part { span: Span::default(), user: None, department: None }];
    }
    let mut parts = vec![];
    for (place, period) in periods.iter().enumerate() {
        let next = periods.get(place + 1).map(|next| next.created_at);
        let (is_first, began) = (place == 0, second_of(period.created_at));
        let is_last_of_second = next.is_none_or(|next| began < second_of(next));
        let span = Span {
            from: (!is_first).then_some(period.created_at),
            to: next,
            also: (!is_first && is_last_of_second && began < period.created_at).then_some(began),
            except: next.map(second_of),
        };
        if let Some(held) = span.within(None, period.ended_at) {
            match memberships {
                None => parts.push(Part { span: held, user: Some(period.user_id.clone()), department: None }),
                Some(all) => by_department(&mut parts, held, &period.user_id, all),
            }
        }
        if let Some(free) = period.ended_at.and_then(|end| span.within(Some(end), None)) {
            parts.push(Part { span: free, user: None, department: None });
        }
    }
    parts
}

/// Cuts a holder's span where their department changed. A row of the second in which the binding began counts to the
/// department at the binding.
fn by_department(parts: &mut Vec<Part>, span: Span, user: &UserId, memberships: &Memberships) {
    let memberships = memberships.get(user).map(Vec::as_slice).unwrap_or_default();
    let is_within =
        |one: &&Membership| span.from.is_none_or(|from| one.since > from) && span.to.is_none_or(|to| one.since < to);
    let is_before = |one: &&Membership| span.from.is_some_and(|from| one.since <= from);
    let at_first = memberships.iter().rfind(is_before).or(memberships.first());
    let later: Vec<&Membership> = memberships
        .iter()
        .filter(is_within)
        // The first department counts before it was recorded too.
        .filter(|one| at_first.is_none_or(|first| one.since != first.since))
        .collect();
    let mut from = span.from;
    let mut department = at_first.map(|first| first.department.clone()).unwrap_or_default();
    for (place, next) in later.iter().map(|one| Some(*one)).chain([None]).enumerate() {
        let to = next.map_or(span.to, |next| Some(next.since));
        let contains = |at: &Timestamp| from.is_none_or(|from| from <= *at) && to.is_none_or(|to| *at < to);
        let also = span.also.filter(|_| place == 0);
        let except = span.except.filter(contains);
        let part = Span { from, to, also, except };
        parts.push(Part { span: part, user: Some(user.clone()), department: Some(department.clone()) });
        if let Some(next) = next {
            from = Some(next.since);
            department.clone_from(&next.department);
        }
    }
}

/// An SQL condition on `request_log`: the row counts for a user `u` who fulfils the condition `user`, which stands in it
/// twice. It is what `at` computes.
pub(crate) fn held_by(user: &str) -> String {
    format!(
        "(token_name IN (SELECT b.instance_id FROM binding b JOIN users u ON u.id = b.user_id WHERE {user}) \
         AND EXISTS (SELECT 1 FROM binding b JOIN users u ON u.id = b.user_id \
         WHERE b.instance_id = request_log.token_name AND {user} AND (b.ended_at IS NULL OR b.ended_at > request_log.created_at) \
         AND b.id = COALESCE( \
         (SELECT h.id FROM binding h WHERE h.instance_id = request_log.token_name AND (h.created_at <= request_log.created_at \
             OR h.created_at / 1000 * 1000 = request_log.created_at) ORDER BY h.created_at DESC, h.id DESC LIMIT 1), \
         (SELECT f.id FROM binding f WHERE f.instance_id = request_log.token_name ORDER BY f.created_at, f.id LIMIT 1))))"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(1_790_000_000_000 + ms).unwrap()
    }

    fn is_in(span: Span, at: Timestamp) -> bool {
        let plain = span.from.is_none_or(|from| from <= at) && span.to.is_none_or(|to| at < to);
        (plain || span.also == Some(at)) && span.except != Some(at)
    }

    proptest! {
        /// Every instant belongs to one part, and to the same holder that `at` names.
        #[test]
        fn every_row_is_in_one_part(
            steps in prop::collection::vec((-1_500i64..2_500, -500i64..2_500, 0u8..3), 0..6), open: bool,
            changes in prop::collection::vec((0i64..12_000, 0u8..3), 0..4)) {
            let (mut clock, mut periods, count) = (0, vec![], steps.len());
            for (place, (gap, length, user)) in steps.into_iter().enumerate() {
                // By the clocks of other replicas, one may begin before the last one ends, or end before it begins.
                let began = clock + gap;
                clock = began + length;
                let is_open = open && place + 1 == count;
                periods.push(Period {
                    user_id: UserId::named(format!("u{user}")),
                    instance_id: InstanceId::named("i"),
                    created_at: time(began),
                    ended_at: (!is_open).then_some(time(clock)),
                });
            }
            periods.sort_by_key(|period: &Period| period.created_at);
            let mut memberships = Memberships::new();
            for user in 0..3 {
                let id = UserId::named(format!("u{user}"));
                let mut since: Vec<i64> = changes.iter().filter(|(_, of)| *of == user).map(|(at, _)| *at).collect();
                since.sort_unstable();
                since.dedup();
                // Whoever never changed has one department, recorded at some time.
                let since = if since.is_empty() { vec![4_000] } else { since };
                let of = |at: i64| Membership { user_id: id.clone(), since: time(at), department: format!("d{at}") };
                memberships.insert(id.clone(), since.into_iter().map(of).collect());
            }
            for memberships in [None, Some(&memberships)] {
                let parts = parts(&periods, memberships);
                let edges = periods.iter().flat_map(|period| [Some(period.created_at), period.ended_at]).flatten();
                let edges = edges.map(|edge| edge.as_millisecond() - time(0).as_millisecond());
                let around = edges.flat_map(|ms| [ms - 1, ms, ms + 1]);
                for ms in (-8_000..16_000).step_by(50).chain(around) {
                    let at = time(ms);
                    let found: Vec<&Part> = parts.iter().filter(|part| is_in(part.span, at)).collect();
                    prop_assert_eq!(found.len(), 1, "{} of {:?}", ms, parts);
                    let holder = super::at(&periods, at);
                    prop_assert_eq!(found[0].user.as_ref(), holder.map(|period| &period.user_id));
                    let (Some(all), Some(holder)) = (memberships, holder) else { continue };
                    let is_first = std::ptr::eq(holder, &periods[0]);
                    let then = if is_first { at } else { at.max(holder.created_at) };
                    let of = &all[&holder.user_id];
                    let department = of.iter().rfind(|one| one.since <= then).unwrap_or(&of[0]);
                    prop_assert_eq!(found[0].department.as_ref(), Some(&department.department));
                }
            }
        }
    }
}
