//! Chat-bots: binds a bot token to an instance. The chat platform returns the bot's name and gets the address of our
//! webhook; a task writes the instance's configuration.

use std::time::Duration;

use base::id::{ChatBindingId, InstanceId};
use base::{Error, Kind, Result, Secret};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use openclaw::config::WEBHOOK_PATH;
use people::chat_binding::{DEFAULT_PLATFORM, New, Target, create};
use queue::audit::By;
use remote::bot::Platform;
use store::chat_binding::{self, ChatBinding};
use store::instance;

use crate::App;
use crate::relay::{Port, reach};

/// The header by which the platform proves that a message is its own.
pub const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";

/// Limits on the size and the duration of an instance's answer to a message.
const LONGEST_ANSWER: usize = 64 * 1024;
const ANSWER: Duration = Duration::from_secs(10);

/// The chat platform, and where it delivers messages to us.
pub struct Bots {
    pub platform: Platform,
    /// Our public address, if it begins with https: the chat platform calls no other address.
    pub webhooks: Option<String>,
}

impl Bots {
    /// Where the platform delivers a bot's messages; `None` for bots that are polled.
    pub fn webhook(&self, binding: &str) -> Option<String> {
        self.webhooks.as_ref().map(|url| format!("{}/hooks/bot/{binding}", url.trim_end_matches('/')))
    }
}

/// Makes a token the instance's bot, in place of its previous bot. Without a `chat_id`, a token that was bound before
/// keeps its own, and all its senders.
pub async fn configure(
    app: &App,
    by: &By,
    target: Target<'_>,
    token: Secret,
    chat_id: Option<String>,
) -> Result<ChatBinding> {
    target.find(app).await?;
    let hash = app.sealer.hash(&token);
    let same = chat_binding::find_by_token(&app.db, &hash).await?;
    if same.as_ref().is_some_and(|binding| binding.instance_id != *target.instance) {
        return Err(Error::conflict("this bot token is bound to another instance already"));
    }
    let keep_senders = chat_id.is_none();
    let chat_id = chat_id.or(same.map(|binding| binding.chat_id)).unwrap_or_default();
    let me = app.bots.platform.me(&token).await?;
    let id = ChatBindingId::fresh();
    let secret = match app.bots.webhook(id.as_str()) {
        Some(url) => {
            let secret = base::secret::random_token()?;
            app.bots.platform.set_webhook(&token, &url, &secret).await?;
            Some(secret)
        }
        // The bot is polled, and a webhook would end the polling.
        None => None,
    };
    let set = secret.is_some();
    let new = New {
        platform: DEFAULT_PLATFORM.into(),
        bot_token: token.clone(),
        chat_id,
        bot_username: me.username,
        keep_senders,
    };
    let made = create(app, by, target, new, &id, secret, true).await;
    if made.is_err() && set {
        take_back(app, &token).await;
    }
    made
}

/// Restores the previous webhook after the binding could not be created.
async fn take_back(app: &App, token: &Secret) {
    let live = async {
        let Some(binding) = chat_binding::find_by_token(&app.db, &app.sealer.hash(token)).await? else {
            return Ok(None);
        };
        Ok::<_, Error>(app.bots.webhook(&binding.id).zip(binding.secret(&app.sealer)?))
    };
    let end = match live.await {
        Ok(Some((url, secret))) => app.bots.platform.set_webhook(token, &url, &secret).await,
        Ok(None) => app.bots.platform.delete_webhook(token).await,
        Err(error) => Err(error),
    };
    if let Err(error) = end {
        tracing::warn!(%error, "a bot's webhook could not be put back");
    }
}

/// The state of an instance's bot.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub binding: Option<ChatBinding>,
    pub webhook_url: String,
    pub pending_update_count: Option<i64>,
    pub last_error: Option<String>,
}

/// Our record, and what the chat platform reports about the bot now.
pub async fn status(app: &App, instance: &InstanceId) -> Result<State> {
    instance::find(&app.db, instance).await?.ok_or(Kind::NotFound)?;
    let bindings = chat_binding::of_instance(&app.db, instance).await?;
    let Some(binding) = bindings.into_iter().find(|b| b.platform == DEFAULT_PLATFORM) else {
        return Ok(State::default());
    };
    let mut state = State { webhook_url: expected_webhook(app, &binding).unwrap_or_default(), ..State::default() };
    match app.bots.platform.webhook_info(&binding.token(&app.sealer)?).await {
        Ok(info) => {
            state.pending_update_count = Some(info.pending_update_count);
            state.last_error = info.last_error_message.filter(|words| !words.is_empty());
            if info.url != state.webhook_url && state.last_error.is_none() {
                state.last_error = Some(match (info.url.is_empty(), state.webhook_url.is_empty()) {
                    (true, _) => "the webhook is not set yet".into(),
                    (false, true) => "a webhook that is not ours is set: the bot cannot be polled".into(),
                    (false, false) => "another webhook than ours is set".into(),
                });
            }
        }
        Err(error) => state.last_error = Some(error.client.into_owned()),
    }
    state.binding = Some(binding);
    Ok(state)
}

fn expected_webhook(app: &App, binding: &ChatBinding) -> Option<String> {
    app.bots.webhook(&binding.id).filter(|_| binding.webhook_secret.is_some())
}

/// Checks by the secret that a message comes from the chat platform. This happens before the message is read.
pub async fn admit(app: &App, id: &ChatBindingId, shown: &Secret) -> Result<Admitted> {
    let binding = chat_binding::find_live(&app.db, id).await?.ok_or(Kind::NotFound)?;
    let secret = binding.secret(&app.sealer)?.ok_or(Kind::NotFound)?;
    // Compare keyed hashes, so that the duration reveals nothing about the secret.
    if app.sealer.hash(&secret) != app.sealer.hash(shown) {
        return Err(Error::from(Kind::Unauthorized).with_operator("a webhook with a wrong secret"));
    }
    if !binding.is_active {
        return Err(Error::from(Kind::Unavailable).with_operator("nobody has the bot's instance"));
    }
    Ok(Admitted { instance: binding.instance_id.clone(), secret })
}

/// A request that proved to be from the chat platform, and the instance it is for.
pub struct Admitted {
    instance: InstanceId,
    secret: Secret,
}

/// Forwards a message from the chat platform to the instance unchanged. Returns the instance's HTTP status.
pub async fn deliver(app: &App, admitted: &Admitted, body: Bytes) -> Result<u16> {
    let Admitted { instance, secret } = admitted;
    let instance = instance::find(&app.db, instance).await?.ok_or(Kind::NotFound)?;
    let road = reach(app, &instance, Port::Webhook).await?;
    let request = Request::builder()
        .method(Method::POST)
        .uri(WEBHOOK_PATH)
        .header("content-type", "application/json")
        .header(SECRET_HEADER, secret.expose())
        .body(Full::new(body))
        .map_err(Error::internal)?;
    let response = remote::assistant::send(road, request).await?;
    let status = response.status().as_u16();
    // Read the answer to its end, within limits, so that the connection closes properly. The platform does not need it.
    tokio::time::timeout(ANSWER, Limited::new(response.into_body(), LONGEST_ANSWER).collect()).await.ok();
    Ok(status)
}
