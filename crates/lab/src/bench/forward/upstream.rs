//! A provider that answers immediately: a small JSON answer, or a stream of 23 events.

use std::convert::Infallible;
use std::net::SocketAddr;

use base::{Error, Result};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

pub struct Upstream {
    pub address: SocketAddr,
}

impl Upstream {
    pub async fn start() -> Result<Upstream> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Error::internal)?;
        let address = listener.local_addr().map_err(Error::internal)?;
        let (whole, stream) = (Bytes::from(whole()), Bytes::from(stream()));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                socket.set_nodelay(true).ok();
                let (whole, stream) = (whole.clone(), stream.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(request, whole.clone(), stream.clone()));
                    http1::Builder::new().serve_connection(TokioIo::new(socket), service).await.ok();
                });
            }
        });
        Ok(Upstream { address })
    }
}

async fn answer(request: Request<Incoming>, whole: Bytes, stream: Bytes) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let streams = body.windows(13).any(|w| w == b"\"stream\":true");
    let (kind, body) = if streams { ("text/event-stream", stream) } else { ("application/json", whole) };
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    Ok(response)
}

fn whole() -> String {
    let text = "An answer of a length that is usual for a short question, so that the body is neither empty nor large.";
    format!(
        "{{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion\",\"created\":0,\"model\":\"gpt-4o\",\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":25,\"completion_tokens\":20,\"total_tokens\":45}}}}"
    )
}

fn stream() -> String {
    let event = |choices: &str, usage: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":0,\"model\":\"gpt-4o\",\"choices\":{choices},\"usage\":{usage}}}\n\n"
        )
    };
    let word = event("[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]", "null");
    let last = event("[]", "{\"prompt_tokens\":25,\"completion_tokens\":21,\"total_tokens\":46}");
    format!("{}{last}data: [DONE]\n\n", word.repeat(21))
}
