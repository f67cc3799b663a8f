//! Rule 9: a chat-bot is bound to it and its channel is off or has no token. Both are restored from the stored binding.

use base::{Error, Result};
use openclaw::Document;
use openclaw::rule::{Channel, Detail, Finding, Rule};

use super::{Case, Handler, Proof};
use crate::assistant::settings;
use crate::reconcile;
use crate::task::Context;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::BotChannel,
    plan: "restore the chat-bot's token from the stored binding",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    repair: Some(|context, case| Box::pin(repair(context, case))),
};

async fn confirm(case: &Case<'_>, finding: Option<&Finding>) -> Result<Proof> {
    let all = settings::known(case.app, case.assistant).await?;
    let (Some(bot), Some(document)) = (all.bot, case.document) else { return Ok(Proof::Refuted) };
    let mut should = document.clone();
    let lost = openclaw::config::edit(&mut should, case.version, |document| bot.apply(document))?;
    if let [first, ..] = lost.as_slice() {
        return Ok(Proof::Confirmed(format!("{} is not what the stored binding says", first.path)));
    }
    Ok(match finding.map(|finding| &finding.detail) {
        Some(Detail::BotChannel(Channel::Refused)) => {
            Proof::HandsOff("the bot platform refuses the stored token: give the bot a new one".into())
        }
        _ => Proof::Refuted,
    })
}

async fn repair(context: &Context, case: &Case<'_>) -> Result<String> {
    let all = settings::known(case.app, case.assistant).await?;
    let bot = all.bot.ok_or_else(|| Error::conflict("no chat-bot is bound to it any more"))?;
    let edit = |document: &mut Document| bot.apply(document);
    reconcile::edit(context, case.assistant, case.version, &edit).await?;
    Ok("restored the chat-bot's channel from the stored binding".into())
}
