//! Shapes that both APIs share.

use base::{Secret, Text};
use people::chat_binding::ChatBinding;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::state::Api;

/// What a login page may offer.
#[derive(Serialize, ToSchema)]
pub struct LoginOptions {
    /// Whether GET /auth/sso leads anywhere.
    pub sso: bool,
    /// The version of the running build.
    #[schema(example = "0.1.0")]
    pub version: &'static str,
}

#[derive(Deserialize, ToSchema)]
pub struct Login {
    #[schema(value_type = String, max_length = 255, example = "ada@example.com")]
    pub email: Text<255>,
    pub password: Secret,
}

#[derive(Deserialize, ToSchema)]
pub struct ChangePassword {
    pub old: Secret,
    /// At least 8 characters.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 1024)]
    pub new: Secret,
}

/// The answer of every delete.
#[derive(Serialize, ToSchema)]
pub struct Deleted {
    pub id: String,
}

/// The answer of what a task will do: GET /tasks/:id tells how it goes.
#[derive(Serialize, ToSchema)]
pub struct Enqueued {
    pub task_id: String,
}

impl From<base::id::TaskId> for Enqueued {
    fn from(id: base::id::TaskId) -> Enqueued {
        Enqueued { task_id: id.to_string() }
    }
}

/// A chat-bot binding; its token is masked.
#[derive(Serialize, ToSchema)]
pub struct ChatBindingItem {
    id: String,
    instance_id: String,
    #[schema(example = "telegram")]
    platform: String,
    /// Masked: the last four characters.
    #[schema(example = "…w0rd")]
    bot_token: String,
    chat_id: String,
    bot_username: String,
    /// 0 or 1.
    is_active: i64,
    created_at: String,
}

impl ChatBindingItem {
    pub fn new(api: &Api, binding: ChatBinding) -> Result<ChatBindingItem, ApiError> {
        let token = binding.token(&api.app.sealer).map_err(base::Error::from)?;
        Ok(ChatBindingItem {
            bot_token: token.masked(),
            id: binding.id.into(),
            instance_id: binding.instance_id.into(),
            platform: binding.platform,
            chat_id: binding.chat_id,
            bot_username: binding.bot_username,
            is_active: binding.is_active.into(),
            created_at: api.zone().show(binding.created_at),
        })
    }
}

#[derive(Deserialize, ToSchema)]
pub struct NewChatBinding {
    /// `telegram` when omitted.
    pub platform: Option<base::Name<20>>,
    /// Unique: a bot belongs to one instance.
    #[schema(value_type = String, format = Password, min_length = 1, max_length = 255)]
    pub bot_token: BotToken,
    #[serde(default)]
    pub chat_id: Text<100>,
    #[serde(default)]
    pub bot_username: Text<100>,
}

impl NewChatBinding {
    pub fn checked(self) -> people::chat_binding::New {
        let platform = self.platform.as_ref().map_or(people::chat_binding::DEFAULT_PLATFORM, |p| p.as_str());
        people::chat_binding::New {
            platform: platform.to_owned(),
            bot_token: self.bot_token.0,
            chat_id: self.chat_id.into(),
            bot_username: self.bot_username.as_str().to_owned(),
        }
    }
}

#[derive(Deserialize, ToSchema)]
pub struct ConfigureBot {
    /// As the platform gave it out.
    #[schema(value_type = String, format = Password, min_length = 1, max_length = 255)]
    pub bot_token: BotToken,
    /// Whose direct messages are answered; without it, people ask to be let in (pairing). Omitted for the token that the
    /// instance has already, it stays as it is; empty takes it away.
    pub chat_id: Option<Text<100>>,
}

/// How an instance's bot stands, by our record and by what the platform says now.
#[derive(Serialize, ToSchema)]
pub struct BotStatus {
    configured: bool,
    #[schema(example = "telegram")]
    platform: String,
    bot_username: String,
    /// 0 or 1.
    is_active: i64,
    /// `webhook` or `polling`; empty without a bot.
    #[schema(example = "polling")]
    mode: &'static str,
    /// Where the platform delivers; empty for a bot that is polled.
    webhook_url: String,
    /// Messages that wait at the platform; null when it cannot be asked.
    pending_update_count: Option<i64>,
    last_error: Option<String>,
}

impl From<fleet::bot::State> for BotStatus {
    fn from(state: fleet::bot::State) -> BotStatus {
        let mode = match (&state.binding, state.webhook_url.is_empty()) {
            (None, _) => "",
            (Some(_), true) => "polling",
            (Some(_), false) => "webhook",
        };
        let (platform, bot_username, is_active) = match &state.binding {
            Some(binding) => (binding.platform.clone(), binding.bot_username.clone(), binding.is_active.into()),
            None => (people::chat_binding::DEFAULT_PLATFORM.to_owned(), String::new(), 0),
        };
        BotStatus {
            configured: state.binding.is_some(),
            platform,
            bot_username,
            is_active,
            mode,
            webhook_url: state.webhook_url,
            pending_update_count: state.pending_update_count,
            last_error: state.last_error,
        }
    }
}

/// A bot's token as it comes in.
pub struct BotToken(pub Secret);

impl<'de> Deserialize<'de> for BotToken {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<BotToken, D::Error> {
        let token = base::Name::<255>::deserialize(from)?;
        Ok(BotToken(Secret::new(token.as_str())))
    }
}

/// A field that may be left out, which leaves things as they are; null would mean nothing, and is refused.
pub fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Tells `null` from "not given": `Option<Option<T>>` in a PATCH.
pub fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(from).map(Some)
}
