//! Frames as a real gateway sent and took them.

use base::Secret;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Version;

const CHAT: &str = include_str!("../../samples/frames/chat.jsonl");
const RESUME: &str = include_str!("../../samples/frames/resume-and-abort.jsonl");
const REFUSED: &str = include_str!("../../samples/frames/refused.jsonl");
const EVENTS: &str = include_str!("../../samples/frames/events.jsonl");

fn frames(text: &str) -> Vec<Frame> {
    text.lines().map(|line| Frame::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn answer_to<'a>(frames: &'a [Frame], method: &str) -> &'a Response {
    let id = frames.iter().find_map(|frame| match frame {
        Frame::Request(request) if request.method == method => Some(request.id.as_str()),
        _ => None,
    });
    let answer = frames.iter().find_map(|frame| match frame {
        Frame::Response(response) if Some(response.id.as_str()) == id => Some(response),
        _ => None,
    });
    answer.unwrap_or_else(|| panic!("no answer to {method}"))
}

fn chats(frames: &[Frame]) -> Vec<ChatEvent> {
    let chat = |frame: &Frame| match frame {
        Frame::Event(event) if event.event == "chat" => event.read(),
        _ => None,
    };
    frames.iter().filter_map(chat).collect()
}

#[test]
fn every_recorded_frame_comes_out_as_it_went_in() {
    for line in [CHAT, RESUME, REFUSED, EVENTS].iter().flat_map(|text| text.lines()) {
        let again = Frame::parse(line).unwrap().to_text();
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&again), value(line));
    }
}

#[test]
fn the_handshake_is_what_a_gateway_took() {
    let recorded = frames(CHAT);
    let Frame::Event(challenge) = &recorded[0] else { panic!() };
    assert_eq!(challenge.event, "connect.challenge");
    assert_eq!(challenge.read::<Challenge>().unwrap().ts, 1_794_702_425_033);

    let Frame::Request(theirs) = &recorded[1] else { panic!() };
    let ours = connect("1", &Secret::new("example-token"), &[Scope::Read, Scope::Write, Scope::Admin], None);
    let Ok(Frame::Request(ours)) = Frame::parse(ours.expose()) else { panic!() };
    let mut theirs = theirs.params.clone().unwrap();
    for optional in ["locale", "userAgent"] {
        theirs.as_object_mut().unwrap().shift_remove(optional);
    }
    assert_eq!((ours.method.as_str(), ours.params), ("connect", Some(theirs)));

    let hello: Hello = answer_to(&recorded, "connect").read().unwrap();
    assert_eq!((hello.protocol, hello.version()), (PROTOCOL, Some(Version::TESTED)));
    assert!(hello.grants(&[Scope::Read, Scope::Write, Scope::Admin]));
    assert!(hello.has("chat.send") && !hello.has("chat.inject"));
    assert_eq!((hello.policy.max_payload, hello.policy.tick_interval_ms), (MAX_BYTES, 30_000));
    assert_eq!(format!("{:?}", connect("1", &Secret::new("x"), Scope::CHAT, None)), "***");
    assert!(!format!("{recorded:?}").contains("example-token"));
}

#[test]
fn a_conversation_is_followed_to_its_end() {
    let recorded = frames(CHAT);
    let sent: Sent = answer_to(&recorded, "chat.send").read().unwrap();
    assert_eq!(sent.status, "started");
    let events = chats(&recorded);
    assert!(events.iter().all(|event| event.run_id == sent.run_id));
    let states: Vec<ChatState> = events.iter().map(|event| event.state).collect();
    assert_eq!(states, [ChatState::Status, ChatState::Status, ChatState::Delta, ChatState::Delta, ChatState::Final]);
    assert_eq!((events[2].delta_text.as_deref(), events[2].text().as_str()), (Some("Hello"), "Hello"));
    assert!(events[3].text().starts_with("Hello"));
    assert_eq!(events[4].text(), "Hello from the fake model. 2+2=4.");
    assert!(events[4].is_end() && !events[3].is_end());

    let history: History = answer_to(&recorded, "chat.history").read().unwrap();
    assert_eq!(
        history.messages.iter().map(text_of).collect::<Vec<_>>(),
        ["hello, what is 2+2?", "Hello from the fake model. 2+2=4. "]
    );
    assert_eq!((history.in_flight_run, history.has_more), (None, false));
    assert_eq!(history.session_info.unwrap().status.as_deref(), Some("done"));
}

#[test]
fn a_client_that_comes_back_finds_the_running_answer() {
    let recorded = frames(RESUME);
    let history: History = answer_to(&recorded, "chat.history").read().unwrap();
    let running = history.in_flight_run.unwrap();
    assert!(running.text.starts_with("word1 word2"));
    assert_eq!(history.session_info.unwrap().status.as_deref(), Some("running"));
    let events = chats(&recorded);
    assert_eq!(events[0].run_id, running.run_id);
    assert!(events[0].text().starts_with(&running.text));
    let aborted = events.last().unwrap();
    assert_eq!((aborted.state, aborted.stop_reason.as_deref()), (ChatState::Aborted, Some("rpc")));
}

#[test]
fn refusals_are_told_apart() {
    let refusals: Vec<Refusal> = frames(REFUSED)
        .into_iter()
        .map(|frame| match frame {
            Frame::Response(Response { outcome: Err(error), .. }) => error.refusal(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        refusals,
        [
            Refusal::WrongToken,
            Refusal::NotPaired,
            Refusal::Other,
            Refusal::Protocol,
            Refusal::NotPaired,
            Refusal::Origin,
            Refusal::NotPaired,
            Refusal::Starting,
            Refusal::Starting,
            Refusal::MissingScope,
            Refusal::MissingScope,
        ]
    );
    let Frame::Response(starting) = &frames(REFUSED)[7] else { panic!() };
    let error = starting.read::<Value>().unwrap_err();
    assert_eq!((error.kind, error.retry_after), (Kind::Unavailable, Some(std::time::Duration::from_millis(500))));
    assert!(Close::of(1012).is_passing() && Close::of(1013).is_passing() && !Close::of(1008).is_passing());
}

#[test]
fn errors_retries_and_the_end_of_a_gateway_are_seen() {
    let recorded = frames(EVENTS);
    let events = chats(&recorded);
    assert_eq!((events[0].state, events[0].phase.as_deref()), (ChatState::Status, Some("starting_model")));
    assert_eq!(events[1].state, ChatState::Error);
    assert!(events[1].error_message.as_deref().unwrap().starts_with("The selected model was not found"));
    let shutdowns = recorded.iter().filter(|frame| matches!(frame, Frame::Event(event) if event.is_shutdown()));
    assert_eq!(shutdowns.count(), 1);
}

#[test]
fn requests_have_the_shape_that_a_gateway_took() {
    let recorded: Vec<Frame> = frames(CHAT).into_iter().chain(frames(RESUME)).collect();
    let theirs = |method: &str| {
        let params = recorded.iter().find_map(|frame| match frame {
            Frame::Request(request) if request.method == method => request.params.clone(),
            _ => None,
        });
        params.unwrap()
    };
    let send =
        Request::chat_send("2", "agent:main:main", "hello, what is 2+2?", "ec7a0dfb-042d-44dd-8f22-f2e83bca1b88", &[]);
    assert_eq!(send.params, Some(theirs("chat.send")));
    assert_eq!(Request::chat_history("3", "agent:main:main", Some(10)).params, Some(theirs("chat.history")));
    assert_eq!(Request::sessions_list("4", Some(5)).params, Some(theirs("sessions.list")));
    let abort = Request::chat_abort("9", "agent:main:emp-50", Some("977cdcde-834a-4175-b422-f85df9c061ab"));
    assert_eq!(abort.params, Some(theirs("chat.abort")));
    assert_eq!(
        Request::sessions_create("2", None, None, None).to_text(),
        r#"{"type":"req","id":"2","method":"sessions.create","params":{}}"#
    );
    let create = Request::sessions_create("2", Some("agent:main:slow"), None, Some("fake/fake-slow"));
    assert_eq!(create.params, Some(json!({"key": "agent:main:slow", "model": "fake/fake-slow"})));
}

#[test]
fn employees_may_chat_and_nothing_else() {
    assert!(ALLOWED.is_sorted());
    for good in [
        "chat.send",
        "chat.history",
        "chat.abort",
        "sessions.list",
        "sessions.create",
        "sessions.patch",
        "sessions.preview",
        "sessions.subscribe",
        "models.list",
    ] {
        assert!(allowed(good), "{good}");
    }
    for bad in [
        "connect",
        "config.get",
        "config.set",
        "sessions.reset",
        "sessions.delete",
        "terminal.open",
        "exec.approvals.get",
        "chat",
        "chat.",
        "chat.inject",
        "Chat.send",
        "chat.send ",
        "",
        "models.authSetApiKey",
    ] {
        assert!(!allowed(bad), "{bad}");
    }
}

#[test]
fn a_clients_text_is_a_plain_request_or_refused() {
    let head = Head::parse(r#" {"type":"req","id":"7","method":"chat.send","params":{"method":"x"},"new":1}"#).unwrap();
    assert_eq!((head.id.as_ref(), head.method.as_ref()), ("7", "chat.send"));
    let escaped = Head::parse(r#"{"type":"req","id":"7","\u006dethod":"config\u002eset"}"#).unwrap();
    assert_eq!(escaped.method, "config.set");
    assert_eq!(
        forbidden(&escaped),
        r#"{"type":"res","id":"7","ok":false,"error":{"code":"FORBIDDEN","message":"config.set is not available here"}}"#
    );
    for bad in [
        "",
        "null",
        "chat.send",
        r#"["req","7","chat.send"]"#,
        r#"{"type":"res","id":"7","method":"chat.send"}"#,
        r#"{"type":"event","event":"chat"}"#,
        r#"{"type":"req","method":"chat.send"}"#,
        r#"{"type":"req","id":7,"method":"chat.send"}"#,
        r#"{"type":"req","id":"7","method":"chat.send","method":"config.set"}"#,
        r#"{"type":"req","id":"7","method":"chat.send","\u006dethod":"config.set"}"#,
        r#"{"type":"req","type":"res","id":"7","method":"chat.send"}"#,
        r#"{"type":"req","id":"7","method":"chat.send"}{"type":"req","id":"8","method":"config.set"}"#,
        r#"{"type":"req","id":"7","method":"chat.send""#,
        &format!(r#"{{"type":"req","id":"{}","method":"chat.send"}}"#, "7".repeat(300)),
    ] {
        assert!(Head::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_frame_of_another_kind_is_kept_and_one_without_is_refused() {
    let other = r#"{"type":"stream","id":"1","data":[1,2]}"#;
    assert_eq!(Frame::parse(other).unwrap().to_text(), other);
    for bad in [
        "",
        "1",
        "[]",
        "{}",
        r#"{"type":1}"#,
        r#"{"type":"req","id":"1"}"#,
        r#"{"type":"res","id":"1"}"#,
        r#"{"type":"event"}"#,
    ] {
        assert!(Frame::parse(bad).is_err(), "{bad}");
    }
    let long = format!(r#"{{"type":"event","event":"x","payload":"{}"}}"#, "y".repeat(MAX_BYTES));
    assert_eq!(Frame::parse(&long).unwrap_err().kind, Kind::TooLarge);
    assert!(Head::parse(&long).is_err());
}

proptest! {
    #[test]
    fn fuzz_any_text_is_a_frame_or_refused(text in "\\PC{0,80}|[{}\\[\\]\",:a-z0-9\\\\]{0,80}") {
        let _ = (Frame::parse(&text), Head::parse(&text));
    }

    /// The relay and the gateway read the same method from a text.
    #[test]
    fn fuzz_damaged_frames_are_read_alike(
        pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), length in 0usize..20, with in "[{}\",:a-z.\\\\]{0,12}",
    ) {
        let all: Vec<&str> = [CHAT, RESUME, REFUSED, EVENTS].iter().flat_map(|text| text.lines()).collect();
        let mut text = pick.get(&all).to_string();
        let start = text.floor_char_boundary(at.index(text.len()));
        let end = text.ceil_char_boundary((start + length).min(text.len()));
        text.replace_range(start..end, &with);
        if let Ok(head) = Head::parse(&text) {
            match Frame::parse(&text) {
                Ok(Frame::Request(request)) => prop_assert_eq!((head.id, head.method), (request.id.into(), request.method.into())),
                other => prop_assert!(false, "{:?}", other),
            }
        }
        if let Ok(frame) = Frame::parse(&text) {
            prop_assert_eq!(Frame::parse(&frame.to_text()).ok(), Some(frame));
        }
    }
}
