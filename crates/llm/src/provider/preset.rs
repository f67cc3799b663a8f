//! What ships with the release about providers: where each kind and each preset answers in which protocol, and what is odd
//! about it. The facts are from public documentation (`source`, read in 2026-11); what it does not say is not claimed here.

use store::model::ProviderKind;
use store::provider::Protocol::{self, Chat, Embeddings, Messages, Responses};

/// Where a provider answers in a protocol, below its address.
pub type Paths = &'static [(Protocol, &'static str)];

/// A provider that speaks others' protocols.
#[derive(Debug)]
pub struct Preset {
    pub name: &'static str,
    /// As the provider writes itself.
    pub title: &'static str,
    pub base_url: &'static str,
    /// The protocols that its documentation describes.
    pub paths: Paths,
    pub needs_key: bool,
    pub oddities: &'static [Oddity],
    /// The documentation.
    pub source: &'static str,
}

macro_rules! oddities {
    ($($(#[doc = $about:literal])* $name:ident = $word:literal,)*) => {
        /// What is odd about a provider.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Oddity { $($(#[doc = $about])* $name),* }

        impl Oddity {
            pub const ALL: &'static [Oddity] = &[$(Oddity::$name),*];

            /// Its name in the API.
            pub fn as_str(self) -> &'static str {
                match self { $(Oddity::$name => $word),* }
            }

            pub fn about(self) -> &'static str {
                match self { $(Oddity::$name => concat!($($about),*).trim_ascii()),* }
            }
        }
    };
}

oddities! {
    /// Chat completions are a trial layer; prompt caching and signed thinking need the Messages API.
    ChatIsATrial = "chat_is_a_trial",
    /// `cache_control` is ignored: the provider caches by its own rules.
    CacheControlIgnored = "cache_control_ignored",
    /// No images and documents in the Messages API.
    MessagesWithoutImages = "messages_without_images",
    /// A model name that it does not know is answered by another model.
    UnknownModelsReplaced = "unknown_models_replaced",
    /// Fields that it does not know are refused (422).
    UnknownFieldsRefused = "unknown_fields_refused",
    /// `logprobs`, `logit_bias` and names of messages are refused; `n` must be 1.
    OneChoiceOnly = "one_choice_only",
    /// A key belongs to a region, which has an address of its own.
    KeysByRegion = "keys_by_region",
    /// Keys of the coding plan have an address of their own.
    CodingPlanElsewhere = "coding_plan_elsewhere",
    /// The Messages API exists in some regions only.
    MessagesInSomeRegions = "messages_in_some_regions",
    /// Answers of the Responses API are not kept: `previous_response_id` continues nothing.
    ResponsesStateless = "responses_stateless",
    /// Only what the loaded model is made for answers.
    ByLoadedModel = "by_loaded_model",
    /// Tool calls of its OpenAI-compatible side are reported to be unreliable.
    ToolCallsUnreliable = "tool_calls_unreliable",
}

const OPENAI_PATHS: [(Protocol, &str); 4] = [
    (Chat, "/v1/chat/completions"),
    (Messages, "/v1/messages"),
    (Responses, "/v1/responses"),
    (Embeddings, "/v1/embeddings"),
];

/// The providers with a kind of their own, as presets: what GET /providers/presets lists first.
pub static KINDS: &[(ProviderKind, Preset)] = &[
    (
        ProviderKind::Anthropic,
        Preset {
            name: "",
            title: "Anthropic",
            base_url: "https://api.anthropic.com",
            paths: &[(Chat, "/v1/chat/completions"), (Messages, "/v1/messages")],
            needs_key: true,
            oddities: &[Oddity::ChatIsATrial],
            source: "https://docs.anthropic.com/en/api/openai-sdk",
        },
    ),
    (
        ProviderKind::Openai,
        Preset {
            name: "",
            title: "OpenAI",
            base_url: "https://api.openai.com",
            paths: &[(Chat, "/v1/chat/completions"), (Responses, "/v1/responses"), (Embeddings, "/v1/embeddings")],
            needs_key: true,
            oddities: &[],
            source: "https://platform.openai.com/docs/api-reference",
        },
    ),
    (
        ProviderKind::Google,
        Preset {
            name: "",
            title: "Google",
            base_url: "https://generativelanguage.googleapis.com",
            paths: &[(Chat, "/v1beta/openai/chat/completions"), (Embeddings, "/v1beta/openai/embeddings")],
            needs_key: true,
            oddities: &[],
            source: "https://ai.google.dev/gemini-api/docs/openai",
        },
    ),
    (
        ProviderKind::Ollama,
        Preset {
            name: "",
            title: "Ollama",
            base_url: "http://localhost:11434",
            paths: &OPENAI_PATHS,
            needs_key: false,
            oddities: &[Oddity::ResponsesStateless, Oddity::ToolCallsUnreliable, Oddity::ByLoadedModel],
            source: "https://docs.ollama.com/api/openai-compatibility",
        },
    ),
    (
        ProviderKind::Compatible,
        Preset {
            name: "",
            title: "OpenAI-compatible",
            base_url: "",
            paths: &OPENAI_PATHS,
            needs_key: false,
            oddities: &[],
            source: "",
        },
    ),
];

/// Providers of the kind `compatible`.
pub static PRESETS: &[Preset] = &[
    Preset {
        name: "deepseek",
        title: "DeepSeek",
        base_url: "https://api.deepseek.com",
        paths: &[(Chat, "/v1/chat/completions"), (Messages, "/anthropic/v1/messages")],
        needs_key: true,
        oddities: &[Oddity::CacheControlIgnored, Oddity::MessagesWithoutImages, Oddity::UnknownModelsReplaced],
        source: "https://api-docs.deepseek.com/guides/anthropic_api",
    },
    Preset {
        name: "qwen",
        title: "Qwen (Model Studio)",
        base_url: "https://dashscope.aliyuncs.com",
        paths: &[
            (Chat, "/compatible-mode/v1/chat/completions"),
            (Embeddings, "/compatible-mode/v1/embeddings"),
            (Messages, "/apps/anthropic/v1/messages"),
            (Responses, "/api/v2/apps/protocols/compatible-mode/v1/responses"),
        ],
        needs_key: true,
        oddities: &[Oddity::KeysByRegion, Oddity::MessagesInSomeRegions],
        source: "https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope",
    },
    Preset {
        name: "moonshot",
        title: "Moonshot (Kimi)",
        base_url: "https://api.moonshot.cn",
        paths: &[(Chat, "/v1/chat/completions"), (Messages, "/anthropic/v1/messages")],
        needs_key: true,
        oddities: &[Oddity::KeysByRegion],
        source: "https://platform.moonshot.cn/docs",
    },
    Preset {
        name: "zhipu",
        title: "Zhipu (GLM)",
        base_url: "https://open.bigmodel.cn/api",
        paths: &[
            (Chat, "/paas/v4/chat/completions"),
            (Embeddings, "/paas/v4/embeddings"),
            (Messages, "/anthropic/v1/messages"),
        ],
        needs_key: true,
        oddities: &[Oddity::KeysByRegion, Oddity::CodingPlanElsewhere],
        source: "https://docs.bigmodel.cn/cn/guide/develop/http/introduction",
    },
    Preset {
        name: "mistral",
        title: "Mistral",
        base_url: "https://api.mistral.ai",
        paths: &[(Chat, "/v1/chat/completions"), (Embeddings, "/v1/embeddings")],
        needs_key: true,
        oddities: &[Oddity::UnknownFieldsRefused],
        source: "https://docs.mistral.ai/api/",
    },
    Preset {
        name: "groq",
        title: "Groq",
        base_url: "https://api.groq.com/openai",
        paths: &[(Chat, "/v1/chat/completions"), (Responses, "/v1/responses")],
        needs_key: true,
        oddities: &[Oddity::OneChoiceOnly],
        source: "https://console.groq.com/docs/openai",
    },
    Preset {
        name: "openrouter",
        title: "OpenRouter",
        base_url: "https://openrouter.ai/api",
        paths: &OPENAI_PATHS,
        needs_key: true,
        oddities: &[Oddity::ResponsesStateless],
        source: "https://openrouter.ai/docs/api-reference/overview",
    },
    Preset {
        name: "vllm",
        title: "vLLM",
        base_url: "http://localhost:8000",
        paths: &OPENAI_PATHS,
        needs_key: false,
        oddities: &[Oddity::ByLoadedModel],
        source: "https://docs.vllm.ai/en/stable/serving/online_serving.html",
    },
    Preset {
        name: "lm-studio",
        title: "LM Studio",
        base_url: "http://localhost:1234",
        paths: &[(Chat, "/v1/chat/completions"), (Responses, "/v1/responses"), (Embeddings, "/v1/embeddings")],
        needs_key: false,
        oddities: &[Oddity::ByLoadedModel],
        source: "https://lmstudio.ai/docs/developer/openai-compat",
    },
];

/// What is known of a kind, or of a preset of the kind `compatible`; `None` for `echo`, and for a preset that does not exist.
pub fn find(kind: ProviderKind, preset: &str) -> Option<&'static Preset> {
    if kind == ProviderKind::Compatible && !preset.is_empty() {
        return PRESETS.iter().find(|known| known.name == preset);
    }
    KINDS.iter().find(|(known, _)| *known == kind && preset.is_empty()).map(|(_, known)| known)
}

/// The public address of a kind; empty where it has none.
pub fn public_url(kind: ProviderKind) -> &'static str {
    find(kind, "").map_or("", |known| known.base_url)
}

impl Preset {
    pub fn path(&self, protocol: Protocol) -> Option<&'static str> {
        self.paths.iter().find(|(known, _)| *known == protocol).map(|(_, path)| *path)
    }

    /// The protocols that it may be asked in.
    pub fn protocols(&self) -> Vec<Protocol> {
        self.paths.iter().map(|(protocol, _)| *protocol).collect()
    }

    /// The address of a protocol. Where the base URL ends with a version already, as clients of OpenAI have it, the path's is not repeated.
    pub fn url(&self, base_url: &str, protocol: Protocol) -> Option<String> {
        let (base, path) = (base_url.trim_end_matches('/'), self.path(protocol)?);
        let last = base.rsplit('/').next().unwrap_or_default();
        let is_version = last
            .strip_prefix('v')
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
        let path = if is_version { path.strip_prefix("/v1").unwrap_or(path) } else { path };
        Some(format!("{base}{path}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_not_repeated() {
        let openai = find(ProviderKind::Openai, "").unwrap();
        for base in ["https://a.example", "https://a.example/", "https://a.example/v1", "https://a.example/v1/"] {
            assert_eq!(openai.url(base, Chat).as_deref(), Some("https://a.example/v1/chat/completions"), "{base}");
        }
        assert_eq!(
            openai.url("https://a.example/api/v4", Chat).as_deref(),
            Some("https://a.example/api/v4/chat/completions")
        );
        assert_eq!(
            openai.url("https://a.example/vx", Chat).as_deref(),
            Some("https://a.example/vx/v1/chat/completions")
        );
        assert_eq!(openai.url("https://a.example", Messages), None);
        let google = find(ProviderKind::Google, "").unwrap();
        assert_eq!(google.url("https://g", Chat).as_deref(), Some("https://g/v1beta/openai/chat/completions"));
    }

    #[test]
    fn every_preset_is_found_by_its_name_and_says_where_it_is_from() {
        for preset in PRESETS {
            assert!(std::ptr::eq(find(ProviderKind::Compatible, preset.name).unwrap(), preset));
            assert!(preset.path(Chat).is_some() && preset.source.starts_with("https://"), "{}", preset.name);
            assert!(url::Url::parse(preset.base_url).is_ok(), "{}", preset.name);
        }
        assert!(find(ProviderKind::Openai, "groq").is_none());
        assert!(find(ProviderKind::Compatible, "nobody").is_none());
        assert!(find(ProviderKind::Echo, "").is_none());
    }
}
