//! The zone in which days begin: replicas agree on it, and days are rebuilt for another while everybody works.

use std::path::Path;

use base::Zone;
use jiff::{SignedDuration, Timestamp};
use store::usage::{self, Rebuild, Span};
use store::{Db, args};

use crate::kit::{Database, PASSWORD, Process, Site};
use crate::on_both;

store::record! {
    struct Sum { n: i64 }
}

fn serve(folder: &Path, database: &Database, zone: &str) -> Process {
    let environment = [
        ("TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL", "root@example.com"),
        ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD),
        ("TIDEPOOL_DATABASE_URL", database.url.expose()),
        ("TIDEPOOL_TIMEZONE", zone),
    ];
    Process::serve(folder, &environment)
}

async fn replicas_agree(database: Database) {
    let folder = tempfile::tempdir().unwrap();
    let mut one = serve(folder.path(), &database, "Europe/Berlin");
    one.ready().await;
    let mut other = serve(folder.path(), &database, "Asia/Tokyo");
    let said = other.ended().await;
    assert!(
        said.contains("TIDEPOOL_TIMEZONE is Asia/Tokyo here, and Europe/Berlin in processes that are running"),
        "{said}"
    );
    let mut same = serve(folder.path(), &database, "Europe/Berlin");
    same.ready().await;
    // Told to stop, they leave; then another zone may come, with any number of processes.
    for process in [one, same] {
        process.terminate();
        process.end();
    }
    let (mut first, mut second) =
        (serve(folder.path(), &database, "Asia/Tokyo"), serve(folder.path(), &database, "Asia/Tokyo"));
    first.ready().await;
    second.ready().await;
    let db = Db::open(&database.url).await.unwrap();
    assert_eq!(usage::zone_of_days(&db).await.unwrap().as_deref(), Some("Asia/Tokyo"));
    assert_eq!(store::invariant::broken(&db).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_agree_sqlite() {
    replicas_agree(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_agree_postgres() {
    if let Some(database) = Database::postgres("zones::replicas_agree").await {
        replicas_agree(database).await;
    }
}

const TOKENS: i64 = 30;
const SLOTS: i64 = 800;

/// Quarters of an hour of many tokens, each with one request more than the one before.
async fn fill(db: &Db, first: Timestamp) {
    for token in 0..TOKENS {
        let rows = (0..SLOTS).map(|n| {
            format!("('t{token:02}', {}, 'm', 'p', {n}, 0, 1, 0, 0)", first.as_millisecond() + n * usage::SLOT_MS)
        });
        let rows: Vec<String> = rows.collect();
        let columns = "token_name, slot, model, provider, requests, errors, prompt_tokens, completion_tokens, quota";
        db.run(&format!("INSERT INTO usage_slot ({columns}) VALUES {}", rows.join(", ")), args![]).await.unwrap();
    }
}

on_both! {
    async fn days_are_rebuilt_in_steps_and_every_answer_is_right_meanwhile(site: Site) {
        let db = &site.app.db;
        let (berlin, tokyo) = (Zone::named("Europe/Berlin").unwrap(), Zone::named("Asia/Tokyo").unwrap());
        let first: Timestamp = "2026-03-02T00:00:00Z".parse().unwrap();
        fill(db, first).await;
        usage::make_days(db, &berlin).await.unwrap();
        usage::recount(db).await.unwrap();
        let sum = async || db.all::<Sum>("SELECT CAST(SUM(requests) AS BIGINT) AS n FROM usage_daily", args![]).await.unwrap()[0].n;
        assert_eq!((sum().await, db.days_pending()), (TOKENS * SLOTS * (SLOTS - 1) / 2, false));
        // A day of Tokyo, of a token that was rebuilt and of one that was not.
        let (from, to) = tokyo.span("2026-03-04".parse().unwrap());
        let span = Span { from: Some(from), to: Some(to), ..Span::default() };
        let of = async |token: &str| {
            let groups = usage::of_token(db, &tokyo, token, span, None).await.unwrap();
            groups.iter().map(|g| (g.date.clone(), g.sums.requests)).collect::<Vec<_>>()
        };
        let inside = (0..SLOTS).filter(|n| (from..to).contains(&(first + SignedDuration::from_millis(n * usage::SLOT_MS))));
        let whole = vec![("2026-03-04".to_owned(), inside.sum::<i64>())];
        assert_ne!(of("t29").await, whole, "by days of another zone");
        assert_eq!(usage::begin_rebuild(db, &tokyo).await.unwrap(), Rebuild::Pending);
        assert!(db.days_pending());
        assert_eq!(of("t29").await, whole);
        assert_eq!(usage::rebuild_some(db, &tokyo).await.unwrap(), Rebuild::Pending, "it takes more than one step");
        assert_eq!((of("t00").await, of("t29").await), (whole.clone(), whole.clone()));
        // Whoever comes now goes on, and does not begin again.
        assert_eq!(usage::begin_rebuild(db, &tokyo).await.unwrap(), Rebuild::Pending);
        assert_eq!(usage::rebuild_some(db, &tokyo).await.unwrap(), Rebuild::Done);
        assert_eq!((of("t00").await, of("t29").await), (whole.clone(), whole));
        assert_eq!((sum().await, db.days_pending()), (TOKENS * SLOTS * (SLOTS - 1) / 2, false));
        assert_eq!(usage::begin_rebuild(db, &tokyo).await.unwrap(), Rebuild::Done);
    }

    /// A process that was frozen while the others were given another zone adds nothing to their days.
    async fn rows_are_added_to_days_of_one_zone(site: Site) {
        let db = &site.app.db;
        let (berlin, tokyo) = (Zone::named("Europe/Berlin").unwrap(), Zone::named("Asia/Tokyo").unwrap());
        let request = store::request_log::NewRequest {
            request_id: base::id::fresh(), token_name: "t".into(), model: "m".into(), provider: "p".into(), kind: store::request_log::RequestType::SUCCESS, is_stream: false,
            prompt_tokens: 1, completion_tokens: 1, quota: 1, duration_ms: 1, error_message: String::new(), estimated: false,
 detail: Default::default(),
            created_at: site.app.clock.now(),
        };
        let add = async |zone: &Zone| {
            let mut tx = db.begin().await?;
            let request = store::request_log::NewRequest { request_id: base::id::fresh(), ..request.clone() };
            store::request_log::add(&mut tx, zone, &[request]).await?;
            tx.commit().await
        };
        usage::make_days(db, &berlin).await.unwrap();
        add(&berlin).await.unwrap();
        usage::begin_rebuild(db, &tokyo).await.unwrap();
        assert!(matches!(add(&berlin).await, Err(store::Error::OtherZone { .. })));
        add(&tokyo).await.unwrap();
        usage::make_days(db, &tokyo).await.unwrap();
        assert!(matches!(add(&berlin).await, Err(store::Error::OtherZone { .. })));
        add(&tokyo).await.unwrap();
        let days: Vec<Sum> = db.all("SELECT CAST(SUM(requests) AS BIGINT) AS n FROM usage_daily", args![]).await.unwrap();
        assert_eq!(days[0].n, 3);
    }

    /// A process that says nothing any more is in nobody's way once its lease is over.
    async fn a_process_that_is_gone_holds_up_no_other_zone(site: Site) {
        use store::lease::Term;
        use store::replica::{self, Replica};
        let now = site.app.clock.now();
        let of = |name, zone| Replica { name, zone, version: "1", started_at: now };
        let term = |seconds| Term::of(&site.app.clock, SignedDuration::from_secs(seconds));
        let db = &site.app.db;
        replica::join(db, &of("a", "Europe/Berlin"), term(30)).await.unwrap();
        replica::join(db, &of("b", "Europe/Berlin"), term(30)).await.unwrap();
        replica::join(db, &of("a", "Europe/Berlin"), term(30)).await.unwrap();
        assert!(matches!(replica::join(db, &of("c", "Asia/Tokyo"), term(30)).await, Err(store::Error::OtherZone { .. })));
        replica::leave(db, "a").await.unwrap();
        site.wait(std::time::Duration::from_secs(31));
        let late = Replica { started_at: site.app.clock.now(), ..of("c", "Asia/Tokyo") };
        replica::join(db, &late, term(30)).await.unwrap();
        assert!(matches!(replica::join(db, &of("b", "Europe/Berlin"), term(30)).await, Err(store::Error::OtherZone { .. })), "it comes back too late");
        // One that died while its clock was an hour ahead.
        replica::leave(db, "c").await.unwrap();
        replica::join(db, &of("d", "Europe/Berlin"), term(3600)).await.unwrap();
        replica::join(db, &late, term(30)).await.unwrap();
    }
}
