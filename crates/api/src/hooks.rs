//! What the bot platform calls: POST /hooks/bot/<binding id>, outside of the versioned API.

use axum::Router;
use axum::extract::Request;
use axum::routing::post;
use base::id::ChatBindingId;
use base::{Error, Kind, Secret};
use fleet::bot;

use crate::envelope::Data;
use crate::extract::{Answer, Path, State, collect};
use crate::state::Shared;

pub fn routes() -> Router<Shared> {
    Router::new().route("/hooks/bot/{id}", post(deliver))
}

/// Hands a bot's message to its instance. Whatever is not 200 the platform delivers again later.
async fn deliver(api: State, Path(id): Path<ChatBindingId>, request: Request) -> Answer<()> {
    let shown = request.headers().get(bot::SECRET_HEADER).and_then(|v| v.to_str().ok());
    let shown = Secret::new(shown.ok_or(Kind::Unauthorized)?);
    let admitted = bot::admit(&api.app, &id, &shown).await?;
    let body = collect(request).await?;
    match bot::deliver(&api.app, &admitted, body.bytes.into()).await? {
        200..300 => Ok(Data(())),
        status => Err(Error::from(Kind::Gateway).with_operator(format_args!("the instance answered {status}")).into()),
    }
}
