//! Calls to a running site. Every answer is checked: JSON in the envelope, a request id, no data on errors.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use testkit::trace;

/// One side of a site.
#[derive(Clone)]
pub struct Origin {
    pub url: String,
    pub http: reqwest::Client,
}

pub struct Call {
    request: reqwest::RequestBuilder,
}

#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Origin {
    pub fn new(url: String) -> Origin {
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Origin { url, http }
    }

    /// A call below /api/v1.
    pub fn call(&self, method: Method, path: &str) -> Call {
        self.raw(method, &format!("/api/v1{path}"))
    }

    pub fn raw(&self, method: Method, path: &str) -> Call {
        Call { request: self.http.request(method, format!("{}{path}", self.url)) }
    }

    pub fn get(&self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    pub fn post(&self, path: &str, body: Value) -> Call {
        self.call(Method::POST, path).json(body)
    }

    pub fn patch(&self, path: &str, body: Value) -> Call {
        self.call(Method::PATCH, path).json(body)
    }

    pub fn put(&self, path: &str, body: Value) -> Call {
        self.call(Method::PUT, path).json(body)
    }

    pub fn delete(&self, path: &str) -> Call {
        self.call(Method::DELETE, path)
    }
}

impl Call {
    pub fn token(self, token: &str) -> Call {
        Call { request: self.request.bearer_auth(token) }
    }

    pub fn json(self, body: Value) -> Call {
        Call { request: self.request.json(&body) }
    }

    pub fn body(self, kind: &str, text: impl Into<reqwest::Body>) -> Call {
        Call { request: self.request.header("content-type", kind).body(text) }
    }

    pub fn header(self, name: &'static str, value: &str) -> Call {
        let value = HeaderValue::from_str(value).unwrap();
        Call { request: self.request.header(HeaderName::from_static(name), value) }
    }

    pub async fn send(self) -> Reply {
        self.try_send().await.expect("no answer")
    }

    /// `None` when the connection ended without an answer.
    pub async fn try_send(self) -> Option<Reply> {
        let response = self.request.send().await.ok()?;
        let (status, headers) = (response.status(), response.headers().clone());
        let path = response.url().path().to_owned();
        let text = response.text().await.ok()?;
        trace::answered(&path, &text);
        let reply = Reply { status, headers, text };
        reply.check();
        Some(reply)
    }

    /// The data of a success.
    pub async fn ok(self) -> Value {
        self.send().await.ok()
    }

    /// Asserts a refusal with this code; answers its message.
    pub async fn refused(self, code: &str) -> String {
        self.send().await.refused(code)
    }
}

impl Reply {
    fn check(&self) {
        assert!(self.headers.contains_key("x-request-id"), "no request id: {self:?}");
        assert!(self.headers.contains_key("content-security-policy"), "no policy: {self:?}");
        let kind = self.header("content-type");
        if kind.starts_with("text/csv") || kind.starts_with("text/html") || self.status.is_redirection() {
            assert!(
                self.status.is_success() || self.status.is_redirection(),
                "a failure outside of the envelope: {self:?}"
            );
            return;
        }
        if kind.starts_with("text/plain") || self.text.starts_with("{\"openapi\"") {
            return;
        }
        let body = self.json();
        let mut keys: Vec<&String> = body.as_object().unwrap().keys().collect();
        keys.sort();
        assert_eq!(keys, ["code", "data", "msg"], "{self:?}");
        let code = body["code"].as_str().unwrap();
        assert_eq!(self.status == StatusCode::OK, code == "0000", "{self:?}");
        if code != "0000" {
            assert!(code.starts_with(self.status.as_str()), "{self:?}");
            assert!(body["data"].is_null(), "{self:?}");
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    #[track_caller]
    pub fn ok(self) -> Value {
        let body = self.json();
        assert_eq!(body["code"], "0000", "{self:?}");
        body["data"].clone()
    }

    #[track_caller]
    pub fn refused(self, code: &str) -> String {
        let body = self.json();
        assert_eq!(body["code"], code, "{self:?}");
        body["msg"].as_str().unwrap().to_owned()
    }
}
