//! Lines as they were recorded, in all forms.

use proptest::prelude::*;

use super::*;

const FILE: &str = include_str!("../../samples/signals.file.jsonl");
const CONSOLE: &str = include_str!("../../samples/signals.console.txt");
const COLOURS: &str = include_str!("../../samples/colours.console.txt");
const CONSOLE_JSON: &str = include_str!("../../samples/console-style-json.jsonl");

fn file(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line::from_file(line.as_bytes()).unwrap_or_else(|| panic!("{line}"))).collect()
}

fn console(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line::from_console(line.as_bytes())).collect()
}

#[test]
fn both_forms_of_a_line_read_alike() {
    let by_file = &file(FILE)[1];
    let by_console = &console(CONSOLE)[1];
    assert_eq!(by_file.message, by_console.message);
    assert!(by_file.message.starts_with("restart-loop breaker tripped: 3 unclean boot(s)"));
    assert_eq!((by_file.subsystem.as_deref(), by_console.subsystem.as_deref()), (Some("gateway"), Some("gateway")));
    assert_eq!((by_file.level, by_console.level), (Some(Level::Error), None));
    assert_eq!(by_file.time.unwrap().to_string(), "2026-11-15T01:42:12.838Z");
    assert_eq!(by_console.time.unwrap().to_string(), "2026-11-15T01:42:12.84Z");
    assert_eq!((&by_file.origin, &by_console.origin), (&Origin::File, &Origin::Console));
}

#[test]
fn a_subsystem_is_known_by_its_short_name_on_the_console_only() {
    let by_console = console("2026-11-15T01:50:34.894+00:00 [reload] x").remove(0);
    assert!(by_console.is_of("gateway/reload") && !by_console.is_of("gateway"));
    let by_file = Line { origin: Origin::File, ..by_console };
    assert!(!by_file.is_of("gateway/reload") && by_file.is_of("reload"));
}

#[test]
fn the_consoles_json_style_is_read_too() {
    let lines = console(CONSOLE_JSON);
    assert_eq!(lines[0].message, "loading configuration…");
    assert_eq!((lines[0].level, lines[0].subsystem.as_deref()), (Some(Level::Info), Some("gateway")));
    assert_eq!(lines[3].fields.get("enabled"), Some(&Value::Bool(false)));
    assert_eq!(signal(&lines[4]), Some(Signal::Ready));
}

#[test]
fn colours_are_no_part_of_a_line() {
    let line = console(COLOURS).remove(0);
    assert_eq!(line.subsystem.as_deref(), Some("telegram"));
    assert!(line.message.ends_with("switch this account to webhook mode."), "{}", line.message);
    assert_eq!(signal(&line), Some(Signal::BotConflict));
}

#[test]
fn signals_are_found_in_the_log_file() {
    let found: Vec<Option<Signal>> = file(FILE).iter().map(signal).collect();
    let failed = |model: &str| Signal::UnknownModel { model: Some(model.into()) };
    assert_eq!(
        found,
        [
            Some(Signal::AutoRestored {
                reason: "size-drop-vs-last-good:4595->1760, missing-meta-vs-last-good".into()
            }),
            Some(Signal::BreakerTripped),
            Some(Signal::ChannelSuppressed { channel: "telegram".into() }),
            Some(Signal::Doubted { reason: "missing-meta-vs-last-good".into() }),
            Some(Signal::BreakerRecovered),
            None,
            Some(Signal::Ready),
            Some(Signal::RestartNeeded(vec!["gateway.controlUi.basePath".into()])),
            Some(Signal::TurnFailed { why: "LLM request failed: connection refused by the provider endpoint.".into() }),
            Some(Signal::ReloadApplied(vec!["channels.telegram.enabled".into()])),
            Some(Signal::BotConflict),
            Some(failed("anthropic/claude-opus-4-5")),
            Some(failed("tidepool/m1")),
        ]
    );
}

#[test]
fn signals_are_found_on_the_console() {
    let found: Vec<Signal> =
        console(CONSOLE).iter().map(|line| signal(line).unwrap_or_else(|| panic!("{line:?}"))).collect();
    assert_eq!(found.len(), 16);
    assert_eq!(found[6], Signal::ReloadApplied(vec!["models.providers.remote.apiKey".into(), "auth.order".into()]));
    assert_eq!(found[11], Signal::UnknownModel { model: Some("tidepool/m1".into()) });
    assert_eq!(found[14], Signal::AuthMigration);
    assert_eq!(found[15], Signal::NewerData);
    let failover = "2026-11-15T00:29:48.776+00:00 [model-fallback/decision] model fallback decision: decision=candidate_failed \
                    requested=dead/x candidate=dead/x reason=timeout next=none detail=Connection error.";
    assert_eq!(
        signal(&console(failover)[0]),
        Some(Signal::Failover { model: Some("dead/x".into()), reason: "timeout".into() })
    );
}

#[test]
fn what_systemd_says_is_told_from_what_a_program_says() {
    let exited = r#"{"MESSAGE":"x: Main process exited","MESSAGE_ID":"98e322203f7a4ed290d09fe03c09fe15","EXIT_CODE":"exited","EXIT_STATUS":"1","_PID":"1","_UID":"0","__REALTIME_TIMESTAMP":"1794707758140663"}"#;
    let line = Line::from_journal(exited.as_bytes()).unwrap();
    assert_eq!(line.exit(), Some(Exit::Status(1)));
    assert_eq!(line.time.unwrap().as_microsecond(), 1_794_707_758_140_663);
    for (from, to) in [
        (r#""_PID":"1""#, r#""_PID":"4711""#),
        (r#""_UID":"0""#, r#""_UID":"1000""#),
        (r#""MESSAGE_ID""#, r#""COMMAND":"ExecStop","MESSAGE_ID""#),
        (r#""EXIT_STATUS":"1""#, r#""EXIT_STATUS":"many""#),
    ] {
        let line = Line::from_journal(exited.replace(from, to).as_bytes()).unwrap();
        assert_eq!(line.exit(), None, "{to}");
    }
    let killed = exited.replace("exited\",\"EXIT_STATUS\":\"1\"", "killed\",\"EXIT_STATUS\":\"KILL\"");
    assert_eq!(Line::from_journal(killed.as_bytes()).unwrap().exit(), Some(Exit::KILL));
}

#[test]
fn a_message_may_be_bytes_or_missing() {
    let line = Line::from_journal(br#"{"MESSAGE":[70,65,255,84],"_PID":"2"}"#).unwrap();
    assert_eq!(line.message, "FA\u{fffd}T");
    assert_eq!(Line::from_journal(br#"{"MESSAGE":null}"#).unwrap().message, "");
    assert!(Line::from_journal(br#"{"OTHER":"x"}"#).is_none());
    assert!(Line::from_journal(b"no json").is_none());
}

#[test]
fn fields_are_whole_words() {
    let line = Line::from_console(b"x decision=a notreason=b reason=c reason=d empty= end");
    assert_eq!(line.field("reason"), Some("c"));
    assert_eq!(line.field("decision"), Some("a"));
    assert_eq!(line.field("empty"), None);
    assert_eq!(line.field("son"), None);
}

#[test]
fn lines_are_bounded() {
    let long = format!("2026-11-15T00:29:48.776+00:00 [x] {}", "y".repeat(1_000_000));
    assert_eq!(Line::from_console(long.as_bytes()).message.chars().count(), LONGEST);
    let long = format!(r#"{{"_meta":{{}},"message":"{}"}}"#, "y".repeat(100_000));
    assert_eq!(Line::from_file(long.as_bytes()).unwrap().message.len(), LONGEST);
    let longer = format!(r#"{{"_meta":{{}},"message":"{}"}}"#, "y".repeat(2_000_000));
    assert!(Line::from_file(longer.as_bytes()).is_none());
}

proptest! {
    #[test]
    fn fuzz_any_bytes_are_a_line_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let line = Line::from_console(&bytes);
        let _ = signal(&line);
        for line in [Line::from_file(&bytes), Line::from_journal(&bytes)].into_iter().flatten() {
            let _ = signal(&line);
        }
    }

    /// A recorded line with a piece cut out, doubled or replaced.
    #[test]
    fn fuzz_damaged_lines_are_read_or_passed_over(
        pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), length in 0usize..60, with in ".{0,20}",
    ) {
        let all: Vec<&str> = FILE.lines().chain(CONSOLE.lines()).chain(CONSOLE_JSON.lines()).collect();
        let mut bytes = pick.get(&all).as_bytes().to_vec();
        let start = at.index(bytes.len());
        let end = (start + length).min(bytes.len());
        bytes.splice(start..end, with.bytes());
        let _ = signal(&Line::from_console(&bytes));
        if let Some(line) = Line::from_file(&bytes) {
            let _ = (signal(&line), line.field("reason"), line.is_trouble());
        }
    }
}
