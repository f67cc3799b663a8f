//! In which protocols each model can be asked. It follows from the records alone, not from who answers at the moment: the
//! configuration of assistants must not change whenever a key is refused.

use std::collections::HashMap;

use base::Result;
use store::model::{Protocol, ProviderKind};

use crate::App;
use crate::model::{self, Listed};
use crate::provider::{self, preset};

/// A model with the protocols in which it can be asked, the one that is best for an assistant first.
#[derive(Clone, Debug)]
pub struct Spoken {
    pub listed: Listed,
    pub protocols: Vec<Protocol>,
}

/// All models, in the order in which they are shown. Of a foreign gateway only OpenAI's chat completions and embeddings
/// are known to work with every model.
pub async fn spoken(app: &App) -> Result<Vec<Spoken>> {
    let listed = model::list(app).await?;
    if !app.upstream.embedded {
        let protocols = vec![Protocol::Chat, Protocol::Embeddings];
        return Ok(listed.into_iter().map(|listed| Spoken { protocols: protocols.clone(), listed }).collect());
    }
    let providers = provider::all(&app.db, &app.sealer, &app.providers).await?;
    let providers = providers.into_iter().filter(|provider| !provider.is_overridden);
    let by_name: HashMap<String, Vec<Protocol>> = providers.map(|of| (of.name, of.protocols)).collect();
    let of = |listed: Listed| {
        let protocols = protocols(&listed, |name| by_name.get(name).map(Vec::as_slice));
        Spoken { listed, protocols }
    };
    Ok(listed.into_iter().map(of).collect())
}

/// The protocols of a model that its own provider or another that offers it speaks.
fn protocols<'a>(listed: &Listed, of_provider: impl Fn(&str) -> Option<&'a [Protocol]>) -> Vec<Protocol> {
    let model = &listed.model;
    let own = match of_provider(&model.provider) {
        Some(own) => own.to_vec(),
        // Nobody made it yet. Its kind says what it will speak; `echo` speaks everything.
        None => preset::find(model.kind, "").map_or_else(|| Protocol::ALL.to_vec(), preset::Preset::protocols),
    };
    let further = listed.offers.iter().filter_map(|offer| of_provider(&offer.provider)).flatten().copied();
    let mut all: Vec<Protocol> = own.into_iter().chain(further).collect();
    all.retain(|protocol| model.protocols.0.is_empty() || model.protocols.0.contains(protocol));
    all.sort_by_key(|protocol| rank(*protocol, model.kind, model.reasoning));
    all.dedup();
    all
}

/// The best protocol of a kind comes first: thinking that is kept from turn to turn, and Anthropic's caches, exist in the
/// provider's own protocol only. Where nothing is gained by it, chat completions are what every provider does best.
fn rank(protocol: Protocol, kind: ProviderKind, reasoning: Option<bool>) -> u8 {
    match (protocol, kind) {
        (Protocol::Messages, ProviderKind::Anthropic) => 0,
        (Protocol::Responses, ProviderKind::Openai) if reasoning == Some(true) => 0,
        (Protocol::Chat, _) => 1,
        (Protocol::Responses, _) => 2,
        (Protocol::Messages, _) => 3,
        (Protocol::Embeddings, _) => 4,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use store::model::price::Version;
    use store::model::{Model, Offer, Words};

    use super::*;

    const OPENAI: &[Protocol] = &[Protocol::Chat, Protocol::Responses, Protocol::Embeddings];
    const VLLM: &[Protocol] = &[Protocol::Chat, Protocol::Messages];

    fn of(kind: ProviderKind, change: impl FnOnce(&mut Listed)) -> Vec<Protocol> {
        let model = Model::named("m", kind, Timestamp::UNIX_EPOCH);
        let price = Version::single(&model, Timestamp::UNIX_EPOCH);
        let mut listed = Listed { model, aliases: vec![], offers: vec![], price };
        change(&mut listed);
        protocols(&listed, |name| match name {
            "openai" => Some(OPENAI),
            "vllm" => Some(VLLM),
            _ => None,
        })
    }

    #[test]
    fn the_providers_own_protocol_comes_first_where_it_gives_more() {
        use Protocol::{Chat, Embeddings, Messages, Responses};
        assert_eq!(of(ProviderKind::Anthropic, |_| ()), [Messages, Chat]);
        assert_eq!(of(ProviderKind::Openai, |_| ()), [Chat, Responses, Embeddings]);
        let thinks = |listed: &mut Listed| listed.model.reasoning = Some(true);
        assert_eq!(of(ProviderKind::Openai, thinks), [Responses, Chat, Embeddings]);
        assert_eq!(of(ProviderKind::Google, thinks), [Chat, Embeddings]);
        let at_vllm = |listed: &mut Listed| listed.model.provider = "vllm".into();
        assert_eq!(of(ProviderKind::Compatible, at_vllm), [Chat, Messages]);
        assert_eq!(of(ProviderKind::Echo, |_| ()), [Chat, Responses, Messages, Embeddings]);
    }

    #[test]
    fn a_model_may_be_limited_and_offered_by_others() {
        let limited = |listed: &mut Listed| listed.model.protocols = Words(vec![Protocol::Responses]);
        assert_eq!(of(ProviderKind::Openai, limited), [Protocol::Responses]);
        let offered = |listed: &mut Listed| {
            let offer = |provider: &str| Offer {
                model: "m".into(),
                provider: provider.into(),
                upstream_name: String::new(),
                place: 0,
            };
            listed.offers = vec![offer("vllm"), offer("nobody")];
        };
        let spoken = of(ProviderKind::Openai, offered);
        assert_eq!(spoken, [Protocol::Chat, Protocol::Responses, Protocol::Messages, Protocol::Embeddings]);
    }
}
