//! A month of usage: more on working days than on weekends, with an occasional error, another model that answered, or
//! another key.

use std::collections::HashMap;

use base::id::UserId;
use base::money::Price;
use base::price::{Counts, Prices, Tier};
use base::{Kind, Page, Result, Sort};
use fleet::App;
use jiff::civil::Weekday;
use jiff::{SignedDuration, Span, Timestamp};
use store::binding;
use store::instance::{self, Instance, InstanceFilter};
use store::request_log::{self, Detail, ExactRequest, NewRequest};
use store::{user, user_department};

use super::{EMBEDDING, TRIED};

const DAYS: i64 = 30;

/// The fallback chain of a new installation.
const CHAIN: &[&str] = &["claude-opus-4-6", "claude-sonnet-4-6", "gpt-4o", "gemini-2.5-flash"];

/// The keys of each provider, as the log shows them: the usual one, and the one that answers where that is refused.
const KEYS: &[(&str, [&str; 2])] = &[
    ("anthropic", ["…Kx3A", "…9dQw"]),
    ("openai", ["…t7Fe", "…m2Rb"]),
    ("google", ["…z5Lc", "…h8Vn"]),
    ("deepseek", ["…7f3a", "…91cd"]),
];

/// The prices that are in force, by model.
type PriceList = HashMap<String, Prices>;

/// Writes the month into the request log, as the embedded gateway would have.
pub async fn month(app: &App) -> Result<()> {
    let sort = Sort { column: "created_at", descending: false };
    let filter = InstanceFilter { assigned: Some(true), ..InstanceFilter::default() };
    // Usage belongs to the user who held the instance at the time.
    let begin = begin(app);
    let assigned = instance::list(&app.db, filter, sort, Page::ALL).await?.list;
    let prices = prices(app).await?;
    let mut rows = vec![];
    let mut tx = app.db.begin().await?;
    for (place, listed) in assigned.into_iter().enumerate() {
        binding::set_begin(&mut tx, &listed.instance.id, begin).await?;
        rows.extend(requests(app, &prices, place, &listed.instance, 0));
    }
    request_log::add_exact(&mut tx, &app.zone, &rows).await?;
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
    let rows = requests(app, &prices(app).await?, idle.len() + 7, &idle[0].instance, DAYS / 2);
    let ended = app.zone.start(app.zone.date(app.clock.now()).saturating_sub(Span::new().days(DAYS / 2 - 1)));
    let mut tx = app.db.begin().await?;
    binding::insert(&mut tx, user, id, binding::Origin::Assigned, None, begin(app)).await?;
    binding::end(&mut tx, id, ended).await?;
    request_log::add_exact(&mut tx, &app.zone, &rows).await?;
    tx.commit().await?;
    store::usage::copy_totals(&app.db).await?;
    Ok(())
}

/// Somebody goes to another department in the middle of the month.
pub async fn moved(app: &App, who: &UserId, department: &str) -> Result<()> {
    let half = app.zone.start(app.zone.date(app.clock.now()).saturating_sub(Span::new().days(DAYS / 2)));
    let mut tx = app.db.begin().await?;
    user_department::set_begin(&mut tx, who, begin(app)).await?;
    let mut user = user::lock(&mut tx, who).await?.ok_or(Kind::NotFound)?;
    user.department = department.to_owned();
    user::update(&mut tx, &user, half).await?;
    tx.commit().await?;
    Ok(())
}

async fn prices(app: &App) -> Result<PriceList> {
    let listed = llm::model::list(app).await?;
    Ok(listed.into_iter().map(|listed| (listed.model.id, listed.price.prices)).collect())
}

/// The first instant of the month.
fn begin(app: &App) -> Timestamp {
    app.zone.start(app.zone.date(app.clock.now()).saturating_sub(Span::new().days(DAYS)))
}

/// The requests of one instance, from the beginning of the month until `until` days ago.
fn requests(app: &App, prices: &PriceList, place: usize, instance: &Instance, until: i64) -> Vec<ExactRequest> {
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
            let way = Way::of(&instance.model, back > DAYS / 2, some(30));
            let duration_ms = 600 + some(9_000) as i64;
            // A conversation's beginning is in the provider's cache. Anthropic also says what it wrote into it.
            let cached = prompt * (40 + some(50) as i64) / 100;
            let known = |n: i64| (!failed).then_some(n);
            let detail = Detail {
                known_input_tokens: known(prompt),
                cache_read_tokens: known(cached),
                cache_write_tokens: known((prompt - cached) / 2).filter(|_| way.provider == "anthropic"),
                reasoning_tokens: known(completion / 4).filter(|_| way.provider != "anthropic"),
                protocol: way.protocol.to_owned(),
                asked_model: way.asked.to_owned(),
                key_hint: way.key_hint.to_owned(),
                retries: Some(way.retries),
                first_byte_ms: known(duration_ms / 5),
            };
            let request = NewRequest {
                request_id: format!("sample-{place}-{back}-{}", some(u64::MAX)),
                token_name: instance.id.to_string(),
                provider: way.provider.to_owned(),
                kind: if failed { request_log::RequestType::ERROR } else { request_log::RequestType::SUCCESS },
                is_stream: some(3) > 0,
                prompt_tokens: tokens(prompt),
                completion_tokens: tokens(completion),
                quota: 0,
                duration_ms,
                error_message: if failed { "the provider answered 529: overloaded".into() } else { String::new() },
                estimated: false,
                detail,
                created_at: at,
                model: way.model.to_owned(),
            };
            rows.push(priced(prices, request));
        }
        // The assistant's memory.
        for _ in 0..some(busy) / 3 {
            let at = app.zone.start(date) + SignedDuration::from_secs(8 * 3600 + some(10 * 3600) as i64);
            let request = embedding(place, back, instance, [some(u64::MAX), some(4_000), some(300)], at);
            if at <= now {
                rows.push(priced(prices, request));
            }
        }
    }
    rows
}

/// Texts that were made into vectors: `some` are the request's number, its size and its time.
fn embedding(place: usize, back: i64, instance: &Instance, some: [u64; 3], at: Timestamp) -> NewRequest {
    let [number, size, time] = some;
    let way = Way::answered(EMBEDDING, EMBEDDING);
    let duration_ms = 80 + time as i64;
    NewRequest {
        request_id: format!("sample-{place}-{back}-e{number}"),
        token_name: instance.id.to_string(),
        model: EMBEDDING.to_owned(),
        provider: way.provider.to_owned(),
        kind: request_log::RequestType::SUCCESS,
        is_stream: false,
        prompt_tokens: 100 + size as i64,
        completion_tokens: 0,
        quota: 0,
        duration_ms,
        error_message: String::new(),
        estimated: false,
        detail: Detail {
            protocol: "embeddings".to_owned(),
            asked_model: EMBEDDING.to_owned(),
            key_hint: way.key_hint.to_owned(),
            retries: Some(way.retries),
            first_byte_ms: Some(duration_ms),
            ..Detail::default()
        },
        created_at: at,
    }
}

/// A request with its cost, as the embedded gateway computes it.
fn priced(prices: &PriceList, request: NewRequest) -> ExactRequest {
    let single = Prices::single(Price::of(&request.model));
    let read = request.detail.cache_read_tokens.unwrap_or(0);
    let written = request.detail.cache_write_tokens.unwrap_or(0);
    let counts = Counts {
        input: request.prompt_tokens - read - written,
        cache_read: read,
        cache_write: written,
        output: request.completion_tokens,
        ..Counts::default()
    };
    let cost = prices.get(&request.model).unwrap_or(&single).cost(&counts, Tier::Standard);
    ExactRequest { request: NewRequest { quota: cost.quota, ..request }, quota_rest: cost.rest }
}

/// Who answered a request.
#[derive(Debug, PartialEq, Eq)]
struct Way<'a> {
    asked: &'a str,
    model: &'a str,
    provider: &'static str,
    protocol: &'static str,
    key_hint: &'static str,
    retries: i64,
}

impl<'a> Way<'a> {
    /// Usually the instance's own model; of thirty requests one is answered by the provider's other key and one by the next
    /// model of the chain, and in the first half of the month two go to a model that was only tried.
    fn of(usual: &'a str, is_early: bool, dice: u64) -> Way<'a> {
        let next = CHAIN.iter().skip_while(|model| **model != usual).nth(1);
        match (dice, next) {
            (0, _) => Way { key_hint: key_hint(provider(usual), 1), retries: 1, ..Way::answered(usual, usual) },
            (1, Some(next)) => Way { retries: 1, ..Way::answered(usual, next) },
            (2 | 3, _) if is_early => Way::answered(TRIED, TRIED),
            _ => Way::answered(usual, usual),
        }
    }

    fn answered(asked: &'a str, model: &'a str) -> Way<'a> {
        let provider = provider(model);
        // Only what speaks the protocol of the request can answer it.
        let is_messages = provider == "anthropic" && self::provider(asked) == "anthropic";
        let protocol = if is_messages { "messages" } else { "chat" };
        Way { asked, model, provider, protocol, key_hint: key_hint(provider, 0), retries: 0 }
    }
}

fn provider(model: &str) -> &'static str {
    match model.split('-').next() {
        Some("claude") => "anthropic",
        Some("gemini") => "google",
        Some("deepseek") => "deepseek",
        _ => "openai",
    }
}

fn key_hint(provider: &str, place: usize) -> &'static str {
    KEYS.iter().find(|(name, _)| *name == provider).map_or("", |(_, hints)| hints[place])
}

#[cfg(test)]
mod tests {
    use base::price::{PerMillion, Rate, TierRate};

    use super::*;

    fn request(cache_read: Option<i64>) -> NewRequest {
        NewRequest {
            request_id: "sample".into(),
            token_name: "fra-1-a".into(),
            model: "claude-sonnet-4-6".into(),
            provider: "anthropic".into(),
            kind: request_log::RequestType::SUCCESS,
            is_stream: true,
            prompt_tokens: 1_000,
            completion_tokens: 101,
            quota: 0,
            duration_ms: 900,
            error_message: String::new(),
            estimated: false,
            detail: Detail { cache_read_tokens: cache_read, ..Detail::default() },
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_cache_saves_and_the_cost_is_exact() {
        let usd = |price: f64| PerMillion::from_usd(price);
        let rate = Rate { input: usd(3.0), output: usd(15.0), cache_read: usd(0.3), ..Rate::default() };
        let rates = vec![TierRate { rate, ..TierRate::default() }];
        let prices = Prices { rates, ..Prices::single(Price::of("claude-sonnet-4-6")) };
        let prices = PriceList::from([("claude-sonnet-4-6".to_owned(), prices)]);
        let cost = |request: NewRequest| {
            let priced = priced(&prices, request);
            (priced.request.quota, priced.quota_rest)
        };
        // 100 × 3,000 + 900 × 300 + 101 × 15,000 billionths of a dollar.
        assert_eq!(cost(request(Some(900))), (1_043, -1_000));
        assert_eq!(cost(request(None)), (2_258, -1_000));
    }

    #[test]
    fn who_answers_speaks_the_protocol() {
        let fallback = Way::of("claude-sonnet-4-6", false, 1);
        assert_eq!((fallback.asked, fallback.model), ("claude-sonnet-4-6", "gpt-4o"));
        assert_eq!((fallback.provider, fallback.protocol, fallback.retries), ("openai", "chat", 1));
        assert_eq!(Way::of("claude-opus-4-6", false, 1).protocol, "messages");
        assert_eq!(
            Way::of("gemini-2.5-flash", false, 1),
            Way::of("gemini-2.5-flash", false, 9),
            "the last of the chain"
        );
        assert_ne!(Way::of("gpt-4o", false, 0).key_hint, Way::of("gpt-4o", false, 9).key_hint);
        assert_eq!(Way::of("gpt-4o", true, 2).provider, "deepseek");
    }
}
