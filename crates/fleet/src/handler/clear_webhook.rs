//! A bot was taken off its instance: the platform is told to deliver its messages nowhere.

use base::{Error, Kind, Result};
use people::task::ClearWebhook;
use queue::task::Run;
use store::chat_binding;

use crate::App;
use crate::task::Context;

impl Run<App> for ClearWebhook {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let id = self.binding_id.clone();
        let binding = chat_binding::find_even_deleted(&app.db, &id).await?.ok_or(Kind::NotFound)?;
        let token = binding.token(&app.sealer)?;
        if chat_binding::find_by_token(&app.db, &app.sealer.hash(&token)).await?.is_some() {
            return Ok("the bot is bound again: its webhook stays".into());
        }
        let cleared = async {
            let url = app.bots.platform.webhook_info(&token).await?.url;
            // Whoever uses the bot elsewhere by now, here or anywhere, has set their own.
            if !url.ends_with(&format!("/hooks/bot/{}", self.binding_id)) {
                return Ok(if url.is_empty() { "no webhook is set" } else { "another webhook is set: it stays" });
            }
            app.bots.platform.delete_webhook(&token).await?;
            Ok::<_, Error>("the webhook is cleared")
        };
        match cleared.await {
            Ok(summary) => Ok(summary.into()),
            // A token that was withdrawn has no webhook any more.
            Err(error) if error.kind == Kind::BadRequest => Ok(format!("nothing to clear: {}", error.client)),
            Err(error) => Err(error),
        }
    }
}
