//! The WebSocket: challenge, connect, requests and events.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::memory::{Begun, now};
use super::{KILLED, MAX_IMAGE, MAX_PAYLOAD, Shared, page};

const METHODS: &[&str] = &[
    "health",
    "status",
    "models.list",
    "config.get",
    "config.set",
    "sessions.list",
    "sessions.create",
    "sessions.patch",
    "sessions.preview",
    "sessions.subscribe",
    "sessions.reset",
    "sessions.delete",
    "chat.history",
    "chat.abort",
    "chat.send",
    "chat.metadata",
];

pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    match shared.starting.load(Ordering::SeqCst) {
        false => axum::Json(json!({"ready": true, "failing": []})).into_response(),
        true => {
            let body = axum::Json(json!({"ready": false, "failing": ["startup-sidecars"]}));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}

pub(super) async fn started(State(shared): State<Arc<Shared>>) -> Response {
    axum::Json(json!({"ok": true, "version": shared.version})).into_response()
}

pub(super) async fn root(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    request: Request,
) -> Response {
    match upgrade {
        Ok(upgrade) => {
            let upgrade = upgrade.max_message_size(MAX_PAYLOAD).max_frame_size(MAX_PAYLOAD);
            upgrade.on_upgrade(move |socket| async move {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                connection(&shared, socket, &headers).await;
                shared.connections.fetch_sub(1, Ordering::SeqCst);
            })
        }
        Err(_) => page::serve(State(shared), request).await,
    }
}

/// The state of a connection: its scopes are set once `connect` succeeded.
struct Client {
    scopes: Option<Vec<String>>,
    seq: u64,
}

async fn connection(shared: &Arc<Shared>, mut socket: WebSocket, headers: &HeaderMap) {
    let mut events = shared.events.subscribe();
    let mut ending = shared.ending.subscribe();
    let mut tick = tokio::time::interval(Duration::from_secs(30));
    tick.tick().await;
    let mut client = Client { scopes: None, seq: 0 };
    let challenge =
        json!({"type": "event", "event": "connect.challenge", "payload": {"nonce": "a-nonce", "ts": now()}});
    if say(&mut socket, &challenge).await.is_none() {
        return;
    }
    loop {
        let over = tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => hear(shared, &mut socket, &mut client, headers, &text).await,
                Some(Ok(Message::Binary(_))) => bye(&mut socket, 1003, "text only").await,
                Some(Ok(_)) => Some(()),
                Some(Err(_)) => bye(&mut socket, 1009, "").await,
                None => None,
            },
            event = events.recv() => match event {
                Ok(event) if client.scopes.is_some() => event_to(&mut socket, &mut client, &event).await,
                Ok(_) | Err(RecvError::Lagged(_)) => Some(()),
                Err(RecvError::Closed) => None,
            },
            _ = tick.tick() => {
                event_to(&mut socket, &mut client, &json!({"event": "tick", "payload": {"ts": now()}})).await
            }
            _ = ending.changed() => {
                let reason = *ending.borrow();
                match reason {
                    Some(KILLED) => None,
                    Some(reason) => {
                        let event = json!({"event": "shutdown", "payload": {"reason": reason, "restartExpectedMs": 1500}});
                        event_to(&mut socket, &mut client, &event).await;
                        bye(&mut socket, 1012, "service restart").await
                    }
                    None => Some(()),
                }
            }
        };
        if over.is_none() {
            return;
        }
    }
}

async fn say(socket: &mut WebSocket, frame: &Value) -> Option<()> {
    // A client that reads nothing must not keep the connection for ever.
    let sent = tokio::time::timeout(Duration::from_secs(30), socket.send(Message::text(frame.to_string()))).await;
    sent.ok()?.ok()
}

async fn bye(socket: &mut WebSocket, code: u16, reason: &str) -> Option<()> {
    let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    let goodbye = async {
        socket.send(close).await.ok();
        while let Some(Ok(_)) = socket.recv().await {}
    };
    tokio::time::timeout(Duration::from_secs(1), goodbye).await.ok();
    None
}

async fn event_to(socket: &mut WebSocket, client: &mut Client, event: &Value) -> Option<()> {
    client.seq += 1;
    let mut frame = json!({"type": "event"});
    frame["event"] = event["event"].clone();
    frame["payload"] = event["payload"].clone();
    frame["seq"] = client.seq.into();
    say(socket, &frame).await
}

fn refusal(id: &Value, error: Value) -> Value {
    json!({"type": "res", "id": id, "ok": false, "error": error})
}

async fn hear(
    shared: &Arc<Shared>,
    socket: &mut WebSocket,
    client: &mut Client,
    headers: &HeaderMap,
    text: &str,
) -> Option<()> {
    let Ok(frame) = serde_json::from_str::<Value>(text) else { return bye(socket, 1008, "invalid frame").await };
    let (id, method, params) = (&frame["id"], frame["method"].as_str().unwrap_or_default(), &frame["params"]);
    let Some(scopes) = &client.scopes else {
        if method != "connect" {
            return bye(socket, 1008, "invalid handshake: first request must be connect").await;
        }
        return connect(shared, socket, client, headers, id, params).await;
    };
    let may = |scope: &str| scopes.iter().any(|s| s == scope || s == "operator.admin");
    let needed = match method {
        "chat.send" | "chat.abort" | "sessions.create" | "sessions.patch" => "operator.write",
        "sessions.reset" | "sessions.delete" | "config.set" => "operator.admin",
        "device.pair.list" | "device.pair.approve" | "channels.pairing.list" | "channels.pairing.dismiss" => {
            "operator.pairing"
        }
        _ => "operator.read",
    };
    if !may(needed) {
        let error = json!({"code": "FORBIDDEN", "message": format!("missing scope: {needed}"), "details": {"code": "MISSING_SCOPE"}});
        return say(socket, &refusal(id, error)).await;
    }
    if shared.fails_calls {
        let error = json!({"code": "UNAVAILABLE", "message": "the session store cannot be read"});
        return say(socket, &refusal(id, error)).await;
    }
    let answered = match (&shared.devices, method) {
        (Some(devices), "device.pair.list") => Ok(devices.lock().unwrap_or_else(|e| e.into_inner()).list()),
        (Some(devices), "device.pair.approve") => {
            let request_id = params["requestId"].as_str().unwrap_or_default();
            devices.lock().unwrap_or_else(|e| e.into_inner()).approve(request_id, scopes)
        }
        _ => request(shared, method, params).await,
    };
    let answer = match answered {
        Ok(payload) => json!({"type": "res", "id": id, "ok": true, "payload": payload}),
        Err(error) => refusal(id, error),
    };
    say(socket, &answer).await
}

async fn connect(
    shared: &Arc<Shared>,
    socket: &mut WebSocket,
    client: &mut Client,
    headers: &HeaderMap,
    id: &Value,
    params: &Value,
) -> Option<()> {
    let names: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or_default())).collect();
    let seen = json!({"headers": names, "params": params});
    shared.connects.lock().unwrap_or_else(|e| e.into_inner()).push(seen);
    if shared.starting.load(Ordering::SeqCst) {
        let error = json!({"code": "UNAVAILABLE", "message": "gateway starting; retry shortly", "retryable": true, "retryAfterMs": 500,
            "details": {"reason": "startup-sidecars"}});
        say(socket, &refusal(id, error)).await;
        return bye(socket, 1013, "gateway starting").await;
    }
    let mut refuse = async |code: &str, message: &str, detail: &str| {
        let error = json!({"code": code, "message": message, "details": {"code": detail}});
        say(socket, &refusal(id, error)).await;
        bye(socket, 1008, message).await
    };
    if params["minProtocol"].as_i64() > Some(4) || params["maxProtocol"].as_i64() < Some(4) {
        return refuse("INVALID_REQUEST", "protocol mismatch", "PROTOCOL_MISMATCH").await;
    }
    let origin = headers.get("origin").and_then(|o| o.to_str().ok());
    let is_page = params["client"]["id"] == "openclaw-control-ui";
    if is_page && !origin.is_some_and(|origin| shared.origins.iter().any(|o| o == origin)) {
        return refuse("INVALID_REQUEST", "origin not allowed", "CONTROL_UI_ORIGIN_NOT_ALLOWED").await;
    }
    if params["auth"]["token"] != shared.token.as_str() {
        let message = "unauthorized: gateway token mismatch (provide gateway auth token)";
        return refuse("INVALID_REQUEST", message, "AUTH_TOKEN_MISMATCH").await;
    }
    if is_page && let Some(devices) = &shared.devices {
        let refused = devices.lock().unwrap_or_else(|e| e.into_inner()).refusal(params);
        if let Some(error) = refused {
            say(socket, &refusal(id, error)).await;
            return bye(socket, 1008, "pairing required: device is not approved yet").await;
        }
    }
    // A backend that sends an Origin, comes through a proxy or from another machine is accepted but gets no scopes.
    let forwarded = headers.keys().any(|name| name.as_str().starts_with("x-forwarded") || name == "forwarded");
    let asked: Vec<String> = serde_json::from_value(params["scopes"].clone()).unwrap_or_default();
    let is_remote = origin.is_some() || forwarded || shared.grants_nothing;
    let scopes = if !is_page && is_remote { vec![] } else { asked };
    let hello = json!({
        "type": "hello-ok", "protocol": 4,
        "server": {"version": shared.version, "bootId": "boot", "connId": "conn"},
        "features": {"methods": METHODS, "events": ["chat", "agent", "health", "tick", "shutdown"]},
        "auth": {"role": "operator", "scopes": scopes},
        "policy": {"maxPayload": MAX_PAYLOAD, "tickIntervalMs": 30000, "attachments": {"maxBytes": 19464192, "maxImageBytes": MAX_IMAGE}},
    });
    client.scopes = Some(scopes);
    say(socket, &json!({"type": "res", "id": id, "ok": true, "payload": hello})).await
}

pub(super) async fn request(shared: &Arc<Shared>, method: &str, params: &Value) -> Result<Value, Value> {
    let invalid = |message: &str| json!({"code": "INVALID_REQUEST", "message": message});
    let text = |name: &str| params[name].as_str();
    match method {
        "health" => Ok(json!({"ok": true, "ts": now()})),
        "models.list" => Ok(json!({"models": [{"id": "sim-1", "name": "sim-1", "provider": "sim"}]})),
        "sessions.list" => {
            let sessions = shared.memory.lock().await.list();
            Ok(
                json!({"ts": now(), "count": sessions.len(), "totalCount": sessions.len(), "hasMore": false, "sessions": sessions}),
            )
        }
        "sessions.create" | "sessions.patch" => {
            let made = format!("agent:main:dashboard:{}", base::id::fresh());
            let key = text("key").unwrap_or(&made);
            shared.memory.lock().await.create(key, text("label"), text("model"));
            Ok(json!({"ok": true, "key": key}))
        }
        "sessions.preview" | "sessions.subscribe" | "chat.metadata" => Ok(json!({"ok": true})),
        "chat.history" => {
            let key = text("sessionKey").ok_or_else(|| invalid("sessionKey is required"))?;
            let limit = params["limit"].as_u64().unwrap_or(200) as usize;
            Ok(shared.memory.lock().await.history(key, limit))
        }
        "chat.abort" => {
            let key = text("sessionKey").ok_or_else(|| invalid("sessionKey is required"))?;
            let mut memory = shared.memory.lock().await;
            memory.unstrand(key);
            let runs = memory.under_way(key, text("runId"));
            for run in &runs {
                let so_far = memory.end(run, true).unwrap_or_default();
                tell(shared, run, key, json!({"state": "aborted", "stopReason": "rpc", "message": message(&so_far)}));
            }
            Ok(json!({"ok": true, "aborted": !runs.is_empty(), "runIds": runs}))
        }
        "chat.send" => send(shared, params).await,
        "channels.pairing.list" if knows_pairing(&shared.version) => Ok(shared.senders.list()),
        "channels.pairing.dismiss" if knows_pairing(&shared.version) => shared.senders.dismiss(params),
        _ => Err(invalid(&format!("unknown method: {method}"))),
    }
}

/// Whether a release has the methods about people who write to a bot: those from 2026.7 on.
fn knows_pairing(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or_default());
    (numbers.next(), numbers.next()) >= (Some(2026), Some(7))
}

async fn send(shared: &Arc<Shared>, params: &Value) -> Result<Value, Value> {
    let invalid = |message: String| json!({"code": "INVALID_REQUEST", "message": message});
    let text = |name: &str| params[name].as_str().map(str::to_owned);
    let (Some(session), Some(said), Some(run)) = (text("sessionKey"), text("message"), text("idempotencyKey")) else {
        return Err(invalid("invalid chat.send params".into()));
    };
    let mut media = vec![];
    for file in params["attachments"].as_array().into_iter().flatten() {
        let Some(content) = file["content"].as_str() else { continue };
        let size = content.rsplit(',').next().unwrap_or_default().trim_end_matches('=').len() * 3 / 4;
        let name = file["fileName"].as_str().unwrap_or("file");
        if file["type"] == "image" && size > MAX_IMAGE {
            return Err(invalid(format!("attachment {name}: image exceeds size limit ({size} > {MAX_IMAGE} bytes)")));
        }
        media.push(json!({"url": format!("media://inbound/{name}"), "fileName": name, "sizeBytes": size}));
    }
    let mut kept =
        json!({"role": "user", "content": said, "timestamp": now(), "idempotencyKey": format!("{run}:user")});
    if !media.is_empty() {
        kept["__openclaw"] = json!({"media": media});
    }
    match shared.memory.lock().await.begin(&session, &run, kept) {
        Begun::New => {
            if let Some(on_run) = shared.on_run.get() {
                on_run(&session);
            }
        }
        Begun::InFlight => return Ok(json!({"runId": run, "status": "in_flight"})),
        Begun::Over => return Ok(json!({"runId": run, "status": "ok"})),
    }
    tokio::spawn(answer(shared.clone(), session, run.clone(), said));
    Ok(json!({"runId": run, "status": "started"}))
}

/// Sends an answer word by word to all connections.
async fn answer(shared: Arc<Shared>, session: String, run: String, said: String) {
    // The answer to `chat.send` comes first.
    tokio::time::sleep(Duration::from_millis(2)).await;
    tell(&shared, &run, &session, json!({"state": "status", "phase": "starting_model"}));
    let words = match words_for(&shared, &run, &said).await {
        Ok(words) => words,
        Err(why) => {
            shared.memory.lock().await.end(&run, true);
            tell(&shared, &run, &session, json!({"state": "error", "errorMessage": why}));
            return;
        }
    };
    let mut paused = shared.paused.subscribe();
    for word in words {
        paused.wait_for(|paused| !*paused).await.ok();
        let so_far = shared.memory.lock().await.grow(&run, &word);
        let Some(so_far) = so_far else { return };
        tell(&shared, &run, &session, json!({"state": "delta", "deltaText": word, "message": message(&so_far)}));
        tokio::time::sleep(shared.pace).await;
    }
    if let Some(whole) = shared.memory.lock().await.end(&run, false) {
        tell(&shared, &run, &session, json!({"state": "final", "stopReason": "stop", "message": message(&whole)}));
    }
}

async fn words_for(shared: &Shared, run: &str, said: &str) -> Result<Vec<String>, String> {
    if let Some(n) = said.strip_prefix("count ").and_then(|n| n.parse::<usize>().ok()) {
        return Ok((1..=n).map(|i| format!("word{i} ")).collect());
    }
    let whole = match &shared.model {
        Some(model) => {
            let (text, usage) = model.ask(said).await?;
            shared.memory.lock().await.used(run, usage);
            text
        }
        None => format!("You said: {said}"),
    };
    Ok(whole.split_inclusive(' ').map(str::to_owned).collect())
}

fn message(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": now()})
}

fn tell(shared: &Shared, run: &str, session: &str, mut payload: Value) {
    payload["runId"] = run.into();
    payload["sessionKey"] = session.into();
    payload["agentId"] = "main".into();
    // An error means that there are no connections: the run continues anyway.
    shared.events.send(Arc::new(json!({"event": "chat", "payload": payload}))).ok();
}
