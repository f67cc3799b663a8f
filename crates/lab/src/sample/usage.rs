//! A month of usage: more on working days than on weekends, with an occasional error.

use base::id::UserId;
use base::money::Price;
use base::{Page, Result, Sort};
use fleet::App;
use jiff::civil::Weekday;
use jiff::{SignedDuration, Span, Timestamp};
use store::binding;
use store::instance::{self, Instance, InstanceFilter};
use store::request_log::{self, Detail, NewRequest};

const DAYS: i64 = 30;

/// Writes the month into the request log, as the embedded gateway would have.
pub async fn month(app: &App) -> Result<()> {
    let sort = Sort { column: "created_at", descending: false };
    let filter = InstanceFilter { assigned: Some(true), ..InstanceFilter::default() };
    // Usage belongs to the user who held the instance at the time.
    let begin = begin(app);
    let assigned = instance::list(&app.db, filter, sort, Page::ALL).await?.list;
    let mut rows = vec![];
    let mut tx = app.db.begin().await?;
    for (place, listed) in assigned.into_iter().enumerate() {
        binding::set_begin(&mut tx, &listed.instance.id, begin).await?;
        rows.extend(requests(app, place, &listed.instance, 0));
    }
    request_log::add(&mut tx, &app.zone, &rows).await?;
    tx.commit().await?;
    store::usage::copy_totals(&app.db).await?;
    Ok(())
}

/// What somebody used who gave an instance back half a month ago.
pub async fn former(app: &App, user: &UserId) -> Result<()> {
    let sort = Sort { column: "created_at", descending: false };
    let filter = InstanceFilter { assigned: Some(false), pooled: Some(false), ..InstanceFilter::default() };
    let idle = instance::list(&app.db, filter, sort, Page { offset: 0, limit: 1 }).await?.list;
    let Some(Instance { id, .. }) = idle.first().map(|listed| &listed.instance) else { return Ok(()) };
    let rows = requests(app, idle.len() + 7, &idle[0].instance, DAYS / 2);
    let ended = app.zone.start(app.zone.date(app.clock.now()).saturating_sub(Span::new().days(DAYS / 2 - 1)));
    let mut tx = app.db.begin().await?;
    binding::insert(&mut tx, user, id, binding::Origin::Assigned, None, begin(app)).await?;
    binding::end(&mut tx, id, ended).await?;
    request_log::add(&mut tx, &app.zone, &rows).await?;
    tx.commit().await?;
    store::usage::copy_totals(&app.db).await?;
    Ok(())
}

/// The first instant of the month.
fn begin(app: &App) -> Timestamp {
    app.zone.start(app.zone.date(app.clock.now()).saturating_sub(Span::new().days(DAYS)))
}

/// The requests of one instance, from the beginning of the month until `until` days ago.
fn requests(app: &App, place: usize, instance: &Instance, until: i64) -> Vec<NewRequest> {
    let now = app.clock.now();
    let today = app.zone.date(now);
    let mut rows = vec![];
    for back in until..DAYS {
        let date = today.saturating_sub(Span::new().days(back));
        let mut seed = (place as u64 + 1) * 7919 + back as u64 * 104_729;
        let mut some = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below.max(1)
        };
        let busy = if matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday) { 2 } else { 9 };
        for _ in 0..some(busy) + busy / 3 {
            let at = app.zone.start(date) + SignedDuration::from_secs(8 * 3600 + some(10 * 3600) as i64);
            if at > now {
                continue;
            }
            let failed = some(25) == 0;
            let (prompt, completion) = (400 + some(3_000) as i64, 60 + some(900) as i64);
            let tokens = |n: i64| if failed { 0 } else { n };
            let provider = provider(&instance.model);
            let duration_ms = 600 + some(9_000) as i64;
            // A conversation's beginning is in the provider's cache. Anthropic also says what it wrote into it.
            let cached = prompt * (40 + some(50) as i64) / 100;
            let known = |n: i64| (!failed).then_some(n);
            let detail = Detail {
                known_input_tokens: known(prompt),
                cache_read_tokens: known(cached),
                cache_write_tokens: known((prompt - cached) / 2).filter(|_| provider == "anthropic"),
                reasoning_tokens: known(completion / 4).filter(|_| provider != "anthropic"),
                protocol: if provider == "anthropic" { "messages" } else { "chat" }.to_owned(),
                asked_model: instance.model.clone(),
                key_hint: String::new(),
                retries: Some(i64::from(some(30) == 0)),
                first_byte_ms: known(duration_ms / 5),
            };
            rows.push(NewRequest {
                request_id: format!("sample-{place}-{back}-{}", some(u64::MAX)),
                token_name: instance.id.to_string(),
                provider: provider.to_owned(),
                kind: if failed { request_log::RequestType::ERROR } else { request_log::RequestType::SUCCESS },
                is_stream: some(3) > 0,
                prompt_tokens: tokens(prompt),
                completion_tokens: tokens(completion),
                quota: Price::of(&instance.model).quota(tokens(prompt + completion)),
                duration_ms,
                error_message: if failed { "the provider answered 529: overloaded".into() } else { String::new() },
                estimated: false,
                detail,
                created_at: at,
                model: instance.model.clone(),
            });
        }
    }
    rows
}

fn provider(model: &str) -> &'static str {
    match model.split('-').next() {
        Some("claude") => "anthropic",
        Some("gemini") => "google",
        _ => "openai",
    }
}
