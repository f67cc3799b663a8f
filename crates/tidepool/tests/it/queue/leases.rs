//! Leases of tasks: workers that stop, die, lose their lease or cannot write, and clocks that jump.

use queue::task_admin;

use super::*;

/// No lease is longer.
const LONGEST: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

on_both! {
    async fn what_a_stopping_worker_cannot_finish_it_gives_back_without_an_attempt(site: Site) {
        let begun = async |gate: &str| {
            let id = enqueue(site, &Probe { gate: Some(gate.to_owned()), ..probe(None) }).await;
            until(site, &id, Status::Processing).await;
            id
        };
        // With time to drain, what runs is finished.
        let working = work(site, Timing { drain: Duration::from_secs(3600), ..QUICK });
        let gate = gate();
        let id = begun(&gate).await;
        working.stop.send(true).unwrap();
        open(&gate);
        working.ended.await.unwrap();
        assert_eq!(task_admin::show(&site.app, &id).await.unwrap().status, Status::Done, "there was time for it");
        // Without, it is given back.
        let working = work(site, Timing { drain: Duration::ZERO, ..QUICK });
        let id = begun(&self::gate()).await;
        working.stop().await;
        let back = task_admin::show(&site.app, &id).await.unwrap();
        assert_eq!((back.status, back.attempts, back.worker), (Status::Pending, 0, None));
    }

    async fn an_outcome_that_cannot_be_written_is_written_later_and_holds_nobody_else(site: Site) {
        let db = &site.app.db;
        // For a while the database takes no "done" of these two instances.
        let refuse: &[&str] = match db.dialect() {
            store::Dialect::Sqlite => &["CREATE TRIGGER refuse BEFORE UPDATE ON task WHEN NEW.status = 'done' AND NEW.instance_id IN ('x', 'y') \
                BEGIN SELECT RAISE(ABORT, 'not now'); END"],
            store::Dialect::Postgres => &[
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING MESSAGE = $$not now$$; END'",
                "CREATE TRIGGER refuse BEFORE UPDATE ON task FOR EACH ROW \
                WHEN (NEW.status = 'done' AND NEW.instance_id IN ('x', 'y')) EXECUTE FUNCTION refuse()",
            ],
        };
        for statement in refuse {
            db.run(statement, vec![]).await.unwrap();
        }
        let working = work(site, QUICK);
        let two = [enqueue(site, &probe(Some("x"))).await, enqueue(site, &probe(Some("y"))).await];
        for id in &two {
            testkit::until_ok("it ends", async || {
                let log = task_admin::log_of(&site.app, id).await.unwrap();
                if log.iter().any(|line| line.line == "ends") { Ok(()) } else { Err(log) }
            })
            .await;
        }
        // Others are claimed, run and written down meanwhile; each time the two are tried, too.
        for _ in 0..2 {
            let other = enqueue(site, &probe(Some("z"))).await;
            until(site, &other, Status::Done).await;
        }
        for id in &two {
            assert_eq!(task_admin::show(&site.app, id).await.unwrap().status, Status::Processing, "it cannot be written yet");
        }
        let allow = match db.dialect() {
            store::Dialect::Sqlite => "DROP TRIGGER refuse",
            store::Dialect::Postgres => "DROP TRIGGER refuse ON task",
        };
        db.run(allow, vec![]).await.unwrap();
        for id in &two {
            let done = until(site, id, Status::Done).await;
            assert_eq!((done.attempts, done.failures), (1, 0), "it ran once, and that is what is written");
        }
        let next = enqueue(site, &probe(Some("x"))).await;
        until(site, &next, Status::Done).await;
        working.stop().await;
    }

    async fn a_clock_that_is_set_ahead_ends_nothing_that_runs(site: Site) {
        // It looks for what others left behind often, and renews rarely.
        let working = work(site, Timing { lease: Duration::from_secs(3600), ..QUICK });
        let gate = gate();
        let id = enqueue(site, &Probe { gate: Some(gate.clone()), ..probe(Some("x")) }).await;
        until(site, &id, Status::Processing).await;
        // The first renewal comes soon after the start, perhaps only now; the next one in twenty minutes.
        testkit::until("its lease looks as if it was over", async || {
            site.wait(Duration::from_secs(2 * 3600));
            store::task::any_abandoned(&site.app.db, Now::of(&site.app.clock), LONGEST).await.unwrap()
        })
        .await;
        // Another worker's is taken up in the same look.
        let (other, _) = left_behind(site, "y", site.app.clock.now() - jiff::SignedDuration::from_secs(1)).await;
        until(site, &other, Status::Failed).await;
        let runs = task_admin::show(&site.app, &id).await.unwrap();
        assert_eq!((runs.status, runs.attempts, runs.failures), (Status::Processing, 1, 0), "it is not abandoned");
        open(&gate);
        let done = until(site, &id, Status::Done).await;
        assert_eq!((done.attempts, done.failures), (1, 0), "it ran once");
        working.stop().await;
    }

    async fn a_worker_prolongs_only_what_it_holds(site: Site) {
        let id = enqueue(site, &probe(Some("x"))).await;
        let mut tx = site.app.db.begin().await.unwrap();
        let now = site.app.clock.now();
        let due = store::task::lock_due(&mut tx, DUE, now).await.unwrap();
        let held = store::task::begin(&mut tx, &due[0], "w", now, Term::until(now)).await.unwrap();
        tx.commit().await.unwrap();
        let (db, later) = (&site.app.db, now + jiff::SignedDuration::from_secs(60));
        store::task::renew(db, "w", [], Term::until(later)).await.unwrap();
        assert_eq!(task_admin::show(&site.app, &id).await.unwrap().lease_until, Some(now), "lost: somebody else may take it");
        assert_eq!(store::task::renew(db, "w", [&held], Term::until(later)).await.unwrap(), []);
        assert_eq!(task_admin::show(&site.app, &id).await.unwrap().lease_until, Some(later));
        // What is not its own any more is said to be lost: another attempt, another worker, a task that ended.
        let (older, elsewhere) = (store::task::Held { attempt: 0, ..held.clone() }, store::task::Held { id: base::id::TaskId::named("nowhere"), ..held.clone() });
        let lost = store::task::renew(db, "w", [&older, &elsewhere], Term::until(later)).await.unwrap();
        assert_eq!(lost, [older, elsewhere]);
        assert_eq!(store::task::renew(db, "v", [&held], Term::until(later)).await.unwrap(), [held]);
    }

    /// A machine that was paused comes back: somebody else has its task, and its own work on it ends at the next renewal.
    async fn work_whose_lease_is_gone_stops(site: Site) {
        let gate = gate();
        let id = enqueue(site, &Probe { gate: Some(gate.clone()), ..probe(None) }).await;
        let working = work(site, Timing { lease: Duration::from_secs(2), ..QUICK });
        until(site, &id, Status::Processing).await;
        let taken = "UPDATE task SET worker = 'somebody else', attempts = attempts + 1 WHERE id = ?";
        site.app.db.run(taken, store::args![id.as_str()]).await.unwrap();
        let ended = async { ENDED.subscribe().wait_for(|ended| ended.contains(&gate)).await.map(drop).unwrap() };
        tokio::time::timeout(testkit::LIMIT, ended).await.expect("it works on without its lease");
        // Its worker has room again, and says nothing about a task that is not its own.
        another_look(site).await;
        let taken = task_admin::show(&site.app, &id).await.unwrap();
        assert_eq!((taken.status, taken.attempts, taken.failures), (Status::Processing, 2, 0));
        working.stop().await;
    }

    /// A worker died while its clock was ahead: nobody waits until that time has come.
    async fn a_lease_of_a_clock_that_was_ahead_binds_nobody(site: Site) {
        let now = site.app.clock.now();
        let (id, _) = left_behind(site, "x", now + jiff::SignedDuration::from_hours(1)).await;
        let working = work(site, QUICK);
        until(site, &id, Status::Failed).await;
        working.stop().await;
    }

    async fn a_task_whose_worker_died_is_taken_up_again_and_that_was_an_attempt(site: Site) {
        let after = |seconds| site.app.clock.now() + jiff::SignedDuration::from_secs(seconds);
        let (id, dead_workers) = left_behind(site, "x", after(60)).await;
        let (earlier, _) = left_behind(site, "y", after(58)).await;
        let working = work(site, QUICK);
        site.wait(Duration::from_secs(59));
        until(site, &earlier, Status::Failed).await;
        assert_eq!(task_admin::show(&site.app, &id).await.unwrap().status, Status::Processing, "its lease still runs");
        site.wait(Duration::from_secs(2));
        let failed = until(site, &id, Status::Failed).await;
        assert_eq!((failed.attempts, failed.failures), (1, 1));
        site.wait(Duration::from_secs(10));
        assert_eq!(until(site, &id, Status::Done).await.attempts, 2);
        // The dead worker wakes up after all: it is too late to say anything.
        let mut tx = site.app.db.begin().await.unwrap();
        assert!(!store::task::done(&mut tx, &dead_workers, "late", site.app.clock.now()).await.unwrap());
        drop(tx);
        working.stop().await;
    }
}
