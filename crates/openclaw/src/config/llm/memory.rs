//! The model that embeds texts for an assistant's memory search. Without one, OpenClaw asks OpenAI straight with a key of
//! the owner's, or searches by words alone.

use base::Result;
use serde_json::json;

use super::super::literal;
use super::Api;
use crate::document::{Document, Path};
use crate::version::Version;

const SEARCH: [&str; 2] = ["memory", "search"];

/// The first release with this place for it.
const KNOWS_SEARCH: Version = Version::new(2026, 8, 1);

/// Has texts embedded through the gateway, unless the owner chose another provider. Without a model of ours, a choice of
/// ours is taken back: OpenClaw finds nothing with a provider that does not answer.
pub(super) fn set(document: &mut Document, version: &Version, model: Option<&str>) -> Result<()> {
    if *version < KNOWS_SEARCH {
        return Ok(());
    }
    let path = |key: &str| Path::from(SEARCH).key(key);
    let ours = Api::Completions.entry();
    match (document.get_str(path("provider")), model) {
        (Some(other), _) if other != ours => Ok(()),
        (_, Some(model)) => {
            document.set(path("provider"), json!(ours))?;
            document.set(path("model"), literal("a model", model)?).map(drop)
        }
        (Some(_), None) => {
            document.remove(path("provider"))?;
            document.remove(path("model")).map(drop)
        }
        (None, None) => Ok(()),
    }
}
