//! Pairing: the people who wrote to an instance's bot and wait to be allowed. Their requests are read on the instance's
//! server, as its user and inside its cell. Approving one records the sender, and a task writes the allow list into the
//! configuration, so that the list is part of the desired state. Nothing is approved in OpenClaw's own store.

use std::time::Duration;

use base::id::ChatBindingId;
use base::{Error, Kind, Result};
use openclaw::frame::{Request, Scope};
use openclaw::pairing::{self, PairingRequest, Waiting};
use people::chat_binding::{ChatBinding, Target};
use people::chat_sender::{self, ChatSender, describe};
use queue::audit::{self, Action, AuditEvent, By};
use queue::throttle::PAIRING;
use remote::host::Command;

use crate::App;
use crate::assistant::{Assistant, cell, install};
use crate::rpc::Rpc;

/// The program reads a few rows; a busy server starts it in seconds.
const READ: Duration = Duration::from_secs(10);
/// The script's status if the server has no Node of ours.
const NO_NODE: i32 = 3;

/// Whom the owner allows.
pub enum Choice {
    /// A sender by the number at the chat platform, whether it asked or not.
    Sender(String),
    /// Whoever has this pairing code.
    Code(String),
}

/// The open requests of people who are not allowed yet.
pub async fn requests(app: &App, target: Target<'_>, id: &ChatBindingId) -> Result<Vec<PairingRequest>> {
    let (_, senders) = chat_sender::of_bot(app, target, id).await?;
    PAIRING.hit(app, target.instance.as_str()).await?;
    let assistant = Assistant::open(app, target.instance).await?;
    let mut requests = read(app, &assistant).await?;
    requests.retain(|request| !is_allowed(&senders, &request.sender_id));
    Ok(requests)
}

fn is_allowed(senders: &[ChatSender], id: &str) -> bool {
    senders.iter().any(|sender| sender.sender_id == id)
}

async fn read(app: &App, assistant: &Assistant) -> Result<Vec<PairingRequest>> {
    let script = Command::script("read-pairing-requests", &[pairing::SCRIPT]);
    let command = script.args([install::node(), assistant.place.state_dir()]).stdin(pairing::PROGRAM);
    let output = cell::run(assistant, command.limit(READ).keep(pairing::MAX_BYTES)).await?;
    let unreadable = || Error::new(Kind::Gateway, "the pairing requests of the instance cannot be read");
    match output.status {
        0 => pairing::parse(&output.stdout, app.clock.now()).map_err(|error| unreadable().with_operator(error)),
        NO_NODE => Err(Error::conflict("the server was not prepared by the platform: enter the sender's id instead")),
        _ => Err(unreadable().with_operator(output.complaint())),
    }
}

/// Allows a sender to write to the bot.
pub async fn allow(
    app: &App,
    by: &By,
    target: Target<'_>,
    id: &ChatBindingId,
    choice: Choice,
) -> Result<(ChatBinding, Vec<ChatSender>)> {
    match choice {
        Choice::Sender(sender) => chat_sender::allow(app, by, target, id, &sender, "").await?,
        Choice::Code(code) => {
            let open = requests(app, target, id).await?;
            let found = open.into_iter().find(|request| request.code.eq_ignore_ascii_case(&code));
            let request = found.ok_or_else(|| Error::new(Kind::NotFound, "no open request has this code"))?;
            chat_sender::allow(app, by, target, id, &request.sender_id, &request.name).await?
        }
    };
    chat_sender::of_bot(app, target, id).await
}

/// Dismisses the request of a sender at the gateway, which keeps three at a time. The sender may ask again.
pub async fn refuse(app: &App, by: &By, target: Target<'_>, id: &ChatBindingId, sender: &str) -> Result<()> {
    let (binding, _) = chat_sender::of_bot(app, target, id).await?;
    PAIRING.hit(app, target.instance.as_str()).await?;
    let assistant = Assistant::open(app, target.instance).await?;
    if install::of_instance(app, &assistant).await? < pairing::KNOWS_DISMISS {
        return Err(Error::conflict("this OpenClaw cannot refuse a request: it ends an hour after it was made"));
    }
    let mut rpc = Rpc::open(app, &assistant.host, &assistant.instance, Scope::PAIR).await?;
    let waiting: Waiting = rpc.call(Request::pairing_list).await?;
    let request =
        waiting.of(sender).ok_or_else(|| Error::new(Kind::NotFound, "no such request waits at the instance"))?;
    rpc.require(|call| Request::pairing_dismiss(call, request)).await?;
    let detail = describe(&binding, sender, "refused", by);
    audit::record_alone(app, by, AuditEvent::info(Action::InstanceUpdate, target.instance.as_str(), &detail)).await
}
