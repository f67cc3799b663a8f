//! Rule 9: a chat-bot is bound to it and its channel is off or has no token. Both are restored from the stored binding.

use base::Result;
use openclaw::rule::{Channel, Detail, Finding, Rule};

use super::{Case, Handler, Reconcile, Remedy, Verdict};
use crate::assistant::desired::Part;
use crate::assistant::settings;
use crate::reconcile::Wish;

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::BotChannel,
    plan: "restore the chat-bot's token from the stored binding",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    remedy: Remedy::Reconcile(Reconcile {
        wish: Wish::Keep,
        part: Some(Part::Bot),
        makes_key: false,
        also: |_| Ok(()),
        done: "restored the chat-bot's channel from the stored binding",
    }),
};

async fn confirm(case: &Case<'_>, finding: Option<&Finding>) -> Result<Verdict> {
    let all = settings::known(case.app, case.assistant).await?;
    let (Some(bot), Some(document)) = (all.bot, case.document) else { return Ok(Verdict::Refuted) };
    let mut should = document.clone();
    let lost = openclaw::config::edit(&mut should, case.version, |document| bot.apply(document))?;
    if let [first, ..] = lost.as_slice() {
        return Ok(Verdict::Confirmed(format!("{} is not what the stored binding says", first.path)));
    }
    Ok(match finding.map(|finding| &finding.detail) {
        Some(Detail::BotChannel(Channel::Refused)) => {
            Verdict::LeftToPeople("the bot platform refuses the stored token: give the bot a new one".into())
        }
        _ => Verdict::Refuted,
    })
}
