//! GET /v1/models, in the format of OpenAI's clients or of Anthropic's. The latter see the models that they can ask.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::Gateway;
use crate::error::{Refusal, Shape};
use crate::models::Model;
use crate::protocol;
use crate::provider::Route;

/// Anthropic's page sizes: the usual one, and the largest.
const USUAL: usize = 20;
const MOST: usize = 1000;

/// The models that a client of this format can use.
fn usable(gateway: &Gateway, shape: Shape) -> Vec<Arc<Model>> {
    let (table, providers) = (gateway.models.now(), gateway.providers.now());
    let in_format = |routes: &[Route], model: &Model| match shape {
        Shape::OpenAi => true,
        Shape::Anthropic => {
            protocol::in_shape(shape, |protocol| routes.iter().any(|route| route.speaks(model, protocol)))
        }
    };
    let answered = |model: &&Arc<Model>| {
        let routes = gateway.providers.routes(&providers, model).ok().filter(|_| model.enabled);
        routes.is_some_and(|routes| in_format(&routes, model))
    };
    table.all.iter().filter(answered).cloned().collect()
}

fn show(model: &Model, shape: Shape) -> Value {
    match shape {
        Shape::OpenAi => json!({
            "id": &*model.id, "object": "model", "created": model.created_at.as_second(), "owned_by": &*model.provider,
        }),
        Shape::Anthropic => json!({
            "type": "model", "id": &*model.id, "display_name": &*model.id,
            "created_at": jiff::fmt::temporal::DateTimePrinter::new().precision(Some(0)).timestamp_to_string(&model.created_at),
        }),
    }
}

/// One model, by its id or an alias. The list has ids alone, so that no model is shown twice.
pub fn find(gateway: &Gateway, shape: Shape, id: &str) -> Option<Value> {
    let id = gateway.models.now().find(id)?.id.clone();
    let model = usable(gateway, shape).into_iter().find(|model| model.id == id)?;
    Some(show(&model, shape))
}

/// The list; Anthropic's has pages.
pub fn list(gateway: &Gateway, shape: Shape, query: Option<&str>) -> Result<Value, Refusal> {
    let models = usable(gateway, shape);
    let shown = |models: &[Arc<Model>]| models.iter().map(|model| show(model, shape)).collect::<Vec<Value>>();
    if shape == Shape::OpenAi {
        return Ok(json!({"object": "list", "data": shown(&models)}));
    }
    let page = Page::read(query.unwrap_or_default())?;
    let (models, has_more) = page.of(&models)?;
    let id = |model: Option<&Arc<Model>>| model.map(|model| model.id.to_string());
    Ok(json!({
        "data": shown(models), "has_more": has_more, "first_id": id(models.first()), "last_id": id(models.last()),
    }))
}

/// Which page of a list: behind or before a model.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    limit: usize,
    after: Option<String>,
    before: Option<String>,
}

impl Page {
    fn read(query: &str) -> Result<Page, Refusal> {
        let mut page = Page { limit: USUAL, after: None, before: None };
        for (name, value) in query.split('&').filter_map(|field| field.split_once('=')) {
            match name {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=MOST).contains(limit));
                    page.limit = limit
                        .ok_or_else(|| Refusal::bad_request(format!("limit: must be 1 to {MOST}")).about("limit"))?;
                }
                "after_id" => page.after = Some(value.to_owned()),
                "before_id" => page.before = Some(value.to_owned()),
                _ => {}
            }
        }
        Ok(page)
    }

    /// The models of this page, and whether there are more in its direction.
    fn of<'a>(&self, models: &'a [Arc<Model>]) -> Result<(&'a [Arc<Model>], bool), Refusal> {
        let place = |id: &str| {
            let place = models.iter().position(|model| *model.id == *id);
            place.ok_or_else(|| Refusal::bad_request("after_id, before_id: no model of the list has this id"))
        };
        if let Some(before) = &self.before {
            let end = place(before)?;
            let begin = end.saturating_sub(self.limit);
            return Ok((&models[begin..end], begin > 0));
        }
        let begin = self.after.as_deref().map(place).transpose()?.map_or(0, |place| place + 1);
        let end = models.len().min(begin + self.limit);
        Ok((&models[begin..end], end < models.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_limited() {
        let page = Page::read("limit=2&after_id=a&x=1").unwrap();
        assert_eq!(page, Page { limit: 2, after: Some("a".into()), before: None });
        assert_eq!(Page::read("").unwrap().limit, USUAL);
        for refused in ["limit=0", "limit=1001", "limit=x"] {
            assert!(Page::read(refused).is_err(), "{refused}");
        }
    }
}
