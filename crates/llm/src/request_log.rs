//! Lists of requests for administrators.

use std::collections::HashMap;

use base::id::{InstanceId, KeyId, UserId};
use base::{Kind, Page, Result};
use jiff::Timestamp;
use store::holder::{self, Among};
use store::request_log::{self, Asked, Request, Text};
use store::user::{self, Label};
use store::{gateway_key, instance, usage};

use crate::{App, key};

/// Up to this many rows are counted; for more, the total comes from the sums.
const COUNTED: i64 = 10_000;

/// The filter of a list.
#[derive(Clone, Debug, Default)]
pub struct RequestFilter {
    /// An instance's id or name.
    pub instance: Option<String>,
    pub sub_key: Option<KeyId>,
    pub model: Option<String>,
    pub succeeded: Option<bool>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub text: Option<String>,
    /// Continues a search that came as far back as this.
    pub search_before: Option<Timestamp>,
}

/// A request with the names of its instance and user.
pub struct Item {
    pub request: Request,
    /// The token's name if no instance has the token.
    pub instance_name: String,
    /// Of whoever held the instance when the request was made; `None` if nobody did.
    pub user: Option<Label>,
}

pub struct Items {
    pub list: Vec<Item>,
    pub total: i64,
    /// `total` is only a minimum: more were not counted.
    pub total_is_minimum: bool,
    /// Only requests since then were searched, and `total` counts only these.
    pub searched_since: Option<Timestamp>,
}

pub async fn requests(app: &App, filter: RequestFilter, page: Page) -> Result<Items> {
    let asked = asked(app, &filter).await?;
    if asked.is_search() {
        let found = request_log::search(&app.db, &asked, filter.search_before, page).await?;
        let (list, total, searched_since) = (items(app, found.list).await?, found.total, found.searched_since);
        return Ok(Items { list, total, total_is_minimum: false, searched_since });
    }
    let list = request_log::list(&app.db, &asked, page).await?;
    let (total, total_is_minimum) = total(app, &asked).await?;
    Ok(Items { list: items(app, list).await?, total, total_is_minimum, searched_since: None })
}

/// One request that is still kept, and the instance whose key it was made with, if it was one's.
pub async fn find(app: &App, id: i64) -> Result<(Item, Option<InstanceId>)> {
    let kept = usage::rows_since(&app.db).await?;
    let request = request_log::find(&app.db, id).await?.filter(|request| request.created_at >= kept);
    let request = request.ok_or(Kind::NotFound)?;
    let instance = instance::names(&app.db, std::slice::from_ref(&request.token_name)).await?.pop();
    let item = items(app, vec![request]).await?.pop().ok_or(Kind::NotFound)?;
    Ok((item, instance.map(|named| named.id)))
}

async fn asked(app: &App, filter: &RequestFilter) -> Result<Asked> {
    let kept = usage::rows_since(&app.db).await?;
    let mut tokens: Option<Vec<String>> = None;
    if let Some(text) = &filter.instance {
        let mut named: Vec<String> =
            instance::like(&app.db, text, true).await?.into_iter().map(|i| i.id.into()).collect();
        // A token that belongs to no instance is found by its own name.
        named.push(text.clone());
        if text == key::PLATFORM_MARK {
            named.push(key::PLATFORM.to_owned());
        }
        tokens = Some(named);
    }
    if let Some(id) = &filter.sub_key {
        let key = gateway_key::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
        tokens = Some(match tokens {
            Some(tokens) => tokens.into_iter().filter(|t| *t == key.name).collect(),
            None => vec![key.name],
        });
    }
    let text = match filter.text.as_deref().map(str::trim).filter(|t| !t.is_empty()) {
        Some(text) => {
            let text = text.to_owned();
            let also = key::PLATFORM_MARK.contains(&text.to_lowercase()).then_some(key::PLATFORM);
            Some(Text { text, also })
        }
        None => None,
    };
    let since = filter.since.unwrap_or(kept).max(kept);
    let (model, succeeded) = (filter.model.clone(), filter.succeeded);
    Ok(Asked { since: Some(since), until: filter.until, tokens, model, succeeded, text, ..Asked::default() })
}

/// The total, and whether it is only a minimum.
async fn total(app: &App, asked: &Asked) -> Result<(i64, bool)> {
    let counted = request_log::count(&app.db, asked, COUNTED).await?;
    if counted < COUNTED {
        return Ok((counted, false));
    }
    let since = asked.since.unwrap_or(Timestamp::UNIX_EPOCH);
    let whole_days = app.zone.midnight(since) == since || since == Timestamp::UNIX_EPOCH;
    let whole_days = whole_days && asked.until.is_none_or(|until| app.zone.midnight(until) == until);
    if !whole_days {
        return Ok((counted, true));
    }
    let last = match asked.until {
        Some(until) => app.zone.date(until).yesterday().unwrap_or(jiff::civil::Date::MIN),
        None => jiff::civil::Date::MAX,
    };
    let first = app.zone.date(since);
    let sums = usage::rows(&app.db, first, last, asked.tokens.as_deref()).await?;
    Ok((sums.rows(asked.succeeded), false))
}

async fn items(app: &App, list: Vec<Request>) -> Result<Vec<Item>> {
    let mut tokens: Vec<String> = list.iter().map(|r| r.token_name.clone()).collect();
    tokens.sort();
    tokens.dedup();
    let names: HashMap<String, String> =
        instance::names(&app.db, &tokens).await?.into_iter().map(|n| (n.id.into(), n.name)).collect();
    let periods = holder::periods(&app.db, Among::Instances(&tokens)).await?;
    let holder = |request: &Request| {
        let periods = periods.get(&request.token_name)?;
        holder::at(periods, request.created_at).map(|period| period.user_id.clone())
    };
    let mut users: Vec<_> = list.iter().filter_map(holder).collect();
    users.sort();
    users.dedup();
    let labels: HashMap<UserId, Label> =
        user::labels_of(&app.db, &users).await?.into_iter().map(|label| (label.id.clone(), label)).collect();
    let item = |request: Request| {
        let token = &request.token_name;
        let instance_name = match names.get(token) {
            Some(name) => name.clone(),
            None if token == key::PLATFORM => key::PLATFORM_MARK.to_owned(),
            None => token.clone(),
        };
        let user = holder(&request).and_then(|id| labels.get(&id)).cloned();
        Item { instance_name, user, request }
    };
    Ok(list.into_iter().map(item).collect())
}
