//! Old requests go, their sums stay.

use base::{Clock, Page};
use jiff::{SignedDuration, Timestamp};
use store::request_log::{self, NewRequest, RequestType};

use crate::kit::{Options, Site};
use crate::on_both;

fn request(n: usize, at: Timestamp) -> NewRequest {
    NewRequest {
        request_id: format!("old-{n}"),
        token_name: "free".into(),
        model: "gpt-4o".into(),
        provider: "openai".into(),
        kind: RequestType::SUCCESS,
        is_stream: false,
        prompt_tokens: 10,
        completion_tokens: 5,
        quota: 7,
        duration_ms: 1,
        error_message: String::new(),
        estimated: false,
        detail: Default::default(),
        created_at: at,
    }
}

on_both! {
    async fn rows_older_than_the_period_are_deleted_in_whole_days(database: Database) {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let clock = Clock::fixed(now);
        let site = Site::start(database, Options { clock: clock.clone(), ..Options::echo() }).await;
        // Ninety days before is the 17th of August, in summer time.
        let first: Timestamp = "2026-08-16T22:00:00Z".parse().unwrap();
        let ms = SignedDuration::from_millis(1);
        let mut times = vec![first - ms, first, now];
        times.extend((0..2500).map(|i| first - SignedDuration::from_secs(60 * (i + 1))));
        let requests: Vec<NewRequest> = times.iter().enumerate().map(|(n, at)| request(n, *at)).collect();
        let mut tx = site.app.db.begin().await.unwrap();
        request_log::add(&mut tx, &site.app.zone, &requests).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(llm::usage::forget_old(&site.app).await.unwrap(), 2501);
        let left = request_log::list(&site.app.db, &Default::default(), Page { offset: 0, limit: 10 }).await.unwrap();
        assert_eq!(left.iter().map(|row| row.created_at).collect::<Vec<_>>(), [now, first]);
        assert_eq!(store::usage::rows_since(&site.app.db).await.unwrap(), first);
        let totals = store::usage::totals(&site.app.db).await.unwrap();
        assert_eq!(totals[0].sums.requests, 2503, "the sums keep what is gone");
        assert_eq!(llm::usage::forget_old(&site.app).await.unwrap(), 0);
        // A longer period brings nothing back, and does not claim to.
        clock.advance(SignedDuration::from_hours(-24 * 10));
        llm::usage::forget_old(&site.app).await.unwrap();
        assert_eq!(store::usage::rows_since(&site.app.db).await.unwrap(), first);
        // For the look at the end: the sums are of more rows than there are.
        let mut tx = site.app.db.begin().await.unwrap();
        for table in ["request_log", "usage_slot", "usage_daily"] {
            tx.run(&format!("DELETE FROM {table}"), vec![]).await.unwrap();
        }
        tx.commit().await.unwrap();
        site
    }
}
