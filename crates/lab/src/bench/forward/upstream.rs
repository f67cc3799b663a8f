//! A provider that answers each exchange immediately.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use base::{Error, Result};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::exchange::Exchange;

pub struct Upstream {
    pub address: SocketAddr,
}

impl Upstream {
    pub async fn start(exchanges: &[Exchange]) -> Result<Upstream> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Error::internal)?;
        let address = listener.local_addr().map_err(Error::internal)?;
        let answers: Arc<Answers> = Arc::new(
            exchanges.iter().map(|one| ((one.path, one.is_stream), Bytes::from(one.answer.clone()))).collect(),
        );
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                socket.set_nodelay(true).ok();
                let answers = answers.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(request, answers.clone()));
                    http1::Builder::new().serve_connection(TokioIo::new(socket), service).await.ok();
                });
            }
        });
        Ok(Upstream { address })
    }
}

/// By path, and whether it is streamed.
type Answers = HashMap<(&'static str, bool), Bytes>;

async fn answer(request: Request<Incoming>, answers: Arc<Answers>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let is_stream = body.windows(13).any(|window| window == b"\"stream\":true");
    let kind = if is_stream { "text/event-stream" } else { "application/json" };
    let mut response = Response::new(Full::new(answers.get(&(path.as_str(), is_stream)).cloned().unwrap_or_default()));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    Ok(response)
}
