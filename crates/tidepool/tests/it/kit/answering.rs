//! A server that gives every request the same answer.

use axum::http::StatusCode;

/// Its address.
pub async fn answering(status: u16, kind: &'static str, body: &str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (status, body) = (StatusCode::from_u16(status).unwrap(), body.to_owned());
    let router = axum::Router::new().fallback(async move || (status, [("content-type", kind)], body));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}
