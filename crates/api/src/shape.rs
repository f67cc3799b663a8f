//! Shapes that both APIs share.

use base::{Listing, Secret, Text};
use fleet::pairing::Choice;
use openclaw::pairing::PairingRequest;
use people::chat_binding::{ChatBinding, require_platform};
use people::chat_sender::{self, ChatSender};
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
    /// Whose messages the bot answers: `chat_id`, and everybody who was allowed later. If it is empty, the bot gives a
    /// pairing code to everybody who writes to it.
    senders: Vec<SenderItem>,
    created_at: String,
}

/// Somebody who may write to a bot.
#[derive(Serialize, ToSchema)]
pub struct SenderItem {
    /// The sender's number at the bot platform.
    #[schema(example = "123456789")]
    sender_id: String,
    /// As the sender calls itself there; empty if the number was entered by hand, or for whoever may not read about people.
    name: String,
    created_at: String,
}

impl ChatBindingItem {
    /// All bots of an instance.
    pub async fn list(api: &Api, bindings: Vec<ChatBinding>) -> Result<Vec<ChatBindingItem>, ApiError> {
        let mut list = Vec::with_capacity(bindings.len());
        for binding in bindings {
            list.push(ChatBindingItem::load(api, binding).await?);
        }
        Ok(list)
    }

    /// A bot with its senders.
    pub async fn load(api: &Api, binding: ChatBinding) -> Result<ChatBindingItem, ApiError> {
        let senders = chat_sender::list(&api.app, &binding).await?;
        ChatBindingItem::new(api, binding, senders)
    }

    pub fn without_names(mut self) -> ChatBindingItem {
        self.senders.iter_mut().for_each(|sender| sender.name.clear());
        self
    }

    pub fn new(api: &Api, binding: ChatBinding, senders: Vec<ChatSender>) -> Result<ChatBindingItem, ApiError> {
        let token = binding.token(&api.app.sealer).map_err(base::Error::from)?;
        let sender = |one: ChatSender| SenderItem {
            sender_id: one.sender_id,
            name: one.name,
            created_at: api.zone().show(one.created_at),
        };
        Ok(ChatBindingItem {
            senders: senders.into_iter().map(sender).collect(),
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

/// Somebody who wrote to a bot and waits to be allowed. The code is the one that the bot answered.
#[derive(Serialize, ToSchema)]
pub struct PairingRequestItem {
    #[schema(example = "123456789")]
    sender_id: String,
    /// As the sender calls itself: anybody may take any name, so compare the code.
    name: String,
    /// Without the `@`; may be empty.
    username: String,
    #[schema(example = "AWU4QEG7")]
    code: String,
    created_at: String,
    expires_at: String,
}

impl PairingRequestItem {
    pub fn new(api: &Api, request: PairingRequest) -> PairingRequestItem {
        PairingRequestItem {
            expires_at: api.zone().show(request.expires_at()),
            created_at: api.zone().show(request.created_at),
            sender_id: request.sender_id,
            name: request.name,
            username: request.username,
            code: request.code,
        }
    }

    pub fn list(api: &Api, requests: Vec<PairingRequest>) -> Listing<PairingRequestItem> {
        let list: Vec<_> = requests.into_iter().map(|request| PairingRequestItem::new(api, request)).collect();
        Listing { total: list.len() as i64, list }
    }
}

/// Whom to allow: one of the two.
#[derive(Deserialize, ToSchema)]
pub struct AllowSender {
    /// The sender's number at the bot platform, whether they asked or not.
    #[schema(value_type = Option<String>, max_length = 20, example = "123456789")]
    pub sender_id: Option<Text<20>>,
    /// The code of an open pairing request.
    #[schema(value_type = Option<String>, max_length = 16, example = "AWU4QEG7")]
    pub code: Option<Text<16>>,
}

impl AllowSender {
    pub fn checked(self) -> Result<Choice, ApiError> {
        match (self.sender_id, self.code) {
            (Some(sender), None) => Ok(Choice::Sender(sender.as_str().trim().to_owned())),
            (None, Some(code)) => Ok(Choice::Code(code.as_str().trim().to_owned())),
            _ => Err(base::Error::field("sender_id", "give either sender_id or code").into()),
        }
    }
}

#[derive(Deserialize, ToSchema)]
pub struct NewChatBinding {
    /// `telegram` when omitted, and the only one that is supported; another is refused (400).
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
            keep_senders: false,
        }
    }
}

#[derive(Deserialize, ToSchema)]
pub struct ConfigureBot {
    /// `telegram` when omitted, and the only one that is supported; another is refused (400).
    pub platform: Option<base::Name<20>>,
    /// As the platform gave it out.
    #[schema(value_type = String, format = Password, min_length = 1, max_length = 255)]
    pub bot_token: BotToken,
    /// Whose direct messages are answered; without it, people ask to be let in (pairing). Omitted for the token that the
    /// instance has already, it stays as it is; empty takes it away.
    pub chat_id: Option<Text<100>>,
}

impl ConfigureBot {
    /// The token and the sender that it is bound with.
    pub fn checked(self) -> Result<(Secret, Option<String>), ApiError> {
        self.platform.as_ref().map_or(Ok(()), |platform| require_platform(platform.as_str()))?;
        Ok((self.bot_token.0, self.chat_id.map(Into::into)))
    }
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
