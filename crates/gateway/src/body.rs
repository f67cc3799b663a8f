//! Reads the bodies of requests: within a time and a size, unpacked if they came packed, and not too many large ones at
//! once.

use std::collections::VecDeque;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use http::header::{CONTENT_ENCODING, EXPECT, HeaderMap};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::error::Refusal;
use crate::{Gateway, MOST_BODY};

/// Smaller bodies need no permit.
const SMALL_BODY: u64 = 64 * 1024;
/// The permits for large bodies, one for each `SMALL_BODY` bytes: 256 MiB in all.
pub const ROOM: usize = 256 * 1024 * 1024 / SMALL_BODY as usize;
/// How long the rest of a refused body is read.
const DISCARD: Duration = Duration::from_secs(3);

/// Reads a body. A large one has a permit for as long as it is in memory.
pub async fn read(
    gateway: &Arc<Gateway>,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Refusal> {
    let found = match is_packed(headers) {
        Ok(packed) => room_for(gateway, &body, packed).await.map(|room| (room, packed)),
        Err(refusal) => Err(refusal),
    };
    let (room, packed) = match found {
        Ok(found) => found,
        Err(refusal) => {
            discard(headers, body).await;
            return Err(refusal);
        }
    };
    let limit = gateway.timing.body_bytes;
    let body = match timeout(gateway.timing.body, read_to_end(headers, body, limit)).await {
        Ok(body) => body?,
        Err(_) => return Err(Refusal::slow_body()),
    };
    let body = if packed { unpack(body, limit).await? } else { body };
    Ok((body, room))
}

fn is_packed(headers: &HeaderMap) -> Result<bool, Refusal> {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    match (encodings.next().map(|value| value.as_bytes().to_ascii_lowercase()).as_deref(), encodings.next()) {
        (None | Some(b"" | b"identity"), None) => Ok(false),
        (Some(b"gzip" | b"x-gzip"), None) => Ok(true),
        _ => Err(Refusal::unknown_encoding()),
    }
}

/// Waits for a permit for a large body. Large bodies stay in memory until the answer begins, so their sum is limited.
async fn room_for(gateway: &Gateway, body: &Incoming, packed: bool) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
    let limit = gateway.timing.body_bytes as u64;
    // A body without a length may be as long as the limit, and so may one that is unpacked.
    let size = body.size_hint().exact().unwrap_or(limit);
    if size > limit {
        return Err(Refusal::too_large(limit as usize));
    }
    let size = if packed { limit.min(size.saturating_mul(MOST_RATIO)) + size } else { size };
    let units = (size / SMALL_BODY) as u32;
    if units == 0 {
        return Ok(None);
    }
    match timeout(gateway.timing.body, gateway.room.clone().acquire_many_owned(units)).await {
        Ok(Ok(room)) => Ok(Some(room)),
        _ => Err(Refusal::unavailable("too many large requests at once")),
    }
}

/// Gzip cannot pack more densely than this.
const MOST_RATIO: u64 = 1_100;

const _: () = assert!(2 * MOST_BODY / (SMALL_BODY as usize) < ROOM, "a body of the largest size would wait for ever");

/// Unpacks a body, up to the limit. Work of more than a moment would block other requests.
async fn unpack(packed: Bytes, limit: usize) -> Result<Bytes, Refusal> {
    let unpacking = tokio::task::spawn_blocking(move || {
        let mut body = Vec::with_capacity(packed.len().saturating_mul(4).min(limit));
        // One byte more than the limit tells a body that is too long.
        let read = MultiGzDecoder::new(&*packed).take(limit as u64 + 1).read_to_end(&mut body);
        read.map(|_| body)
    });
    match unpacking.await {
        Ok(Ok(body)) if body.len() > limit => Err(Refusal::too_large(limit)),
        Ok(Ok(body)) => Ok(body.into()),
        Ok(Err(_)) => Err(Refusal::bad_request("the body is not gzip as its content-encoding says")),
        Err(_) => Err(Refusal::internal()),
    }
}

/// Reads and drops what a client still sends, within limits. If the connection closed with unread bytes, the client
/// would lose the answer. A client that sent `Expect` has not sent the body yet, and need not.
pub async fn discard(headers: &HeaderMap, mut body: Incoming) {
    if headers.contains_key(EXPECT) {
        return;
    }
    let mut left = MOST_BODY;
    let discarding = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    timeout(DISCARD, discarding).await.ok();
}

async fn read_to_end(headers: &HeaderMap, mut body: Incoming, limit: usize) -> Result<Bytes, Refusal> {
    let mut pieces: VecDeque<Bytes> = VecDeque::new();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::bad_request("the body could not be read"))?;
        let Ok(piece) = frame.into_data() else { continue };
        size += piece.len();
        if size > limit {
            discard(headers, body).await;
            return Err(Refusal::too_large(limit));
        }
        pieces.push_back(piece);
        if body.is_end_stream() {
            break;
        }
    }
    Ok(joined(&pieces))
}

/// Joins the pieces; a single piece, the usual case, is not copied.
pub fn joined(pieces: &VecDeque<Bytes>) -> Bytes {
    match pieces.len() {
        0 => Bytes::new(),
        1 => pieces[0].clone(),
        _ => {
            let mut all = Vec::with_capacity(pieces.iter().map(Bytes::len).sum());
            pieces.iter().for_each(|piece| all.extend_from_slice(piece));
            all.into()
        }
    }
}
