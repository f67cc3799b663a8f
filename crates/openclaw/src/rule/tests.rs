//! Each rule finds its own example and no other's, in every form of log; and the text of a chat is never evidence.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::sweep::{Http, Listener, Service};
use crate::unit::{Active, Name, State};

/// Logs that were recorded while a rule's case was provoked on a real server: `samples/rules/<number>.<form>`.
struct Example {
    rule: Rule,
    console: String,
    /// Empty if the case leaves nothing in that log.
    file: String,
    journal: String,
}

static EXAMPLES: LazyLock<Vec<Example>> = LazyLock::new(|| {
    let example = |rule: Rule| {
        let read = |form: &str| {
            let path = format!("{}/samples/rules/{}.{form}", env!("CARGO_MANIFEST_DIR"), rule.number());
            std::fs::read_to_string(path).unwrap_or_default()
        };
        Example { rule, console: read("console.txt"), file: read("file.jsonl"), journal: read("journal.jsonl") }
    };
    RULES.iter().map(|(rule, _)| *rule).filter(|rule| reads_logs(*rule)).map(example).collect()
});

/// The others look at the configuration or at the state alone; their own tests show their cases.
fn reads_logs(rule: Rule) -> bool {
    let path = format!("{}/src/rule/{}.rs", env!("CARGO_MANIFEST_DIR"), rule.as_str());
    let source = std::fs::read_to_string(path).unwrap();
    source.contains("evidence.lines") || source.contains("evidence.recent()")
}

fn console(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line::from_console(line.as_bytes())).collect()
}

fn file(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line::from_file(line.as_bytes()).unwrap_or_else(|| panic!("{line}"))).collect()
}

fn journal(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line::from_journal(line.as_bytes()).unwrap_or_else(|| panic!("{line}"))).collect()
}

impl Example {
    fn forms(&self) -> [Vec<Line>; 3] {
        [console(&self.console), file(&self.file), journal(&self.journal)].map(|lines| self.often_enough(lines))
    }

    /// The confidence from each form of log; `None` if that log does not show the case.
    fn confidences(&self) -> [Option<Confidence>; 3] {
        // Of an end systemd tells more than the program's own lines do.
        let journal = match self.rule {
            Rule::ExitLoop | Rule::OutOfMemory => Confidence::Fact,
            _ => Confidence::Hearsay,
        };
        let shown = |text: &str, confidence| (!text.is_empty()).then_some(confidence);
        [
            shown(&self.console, Confidence::Hearsay),
            shown(&self.file, Confidence::Logged),
            shown(&self.journal, journal),
        ]
    }

    /// Rule 8 counts turns, but only one was recorded, so it is repeated.
    fn often_enough(&self, lines: Vec<Line>) -> Vec<Line> {
        if self.rule != Rule::RateLimited {
            return lines;
        }
        let turn = |number: usize| {
            lines.iter().cloned().map(move |mut line| {
                let run = format!("turn-{number}");
                line.message = line.message.replace("chatcmpl_3d2d4df4-0164-4e86-a493-b809213c4df2", &run);
                if let Some(value) = line.fields.get_mut("runId") {
                    *value = run.into();
                }
                line
            })
        };
        (0..3).flat_map(turn).collect()
    }
}

fn example(rule: Rule) -> &'static Example {
    EXAMPLES.iter().find(|example| example.rule == rule).unwrap()
}

fn expected() -> Expected {
    Expected { runner: Runner::Unit(Name::parse("oc@i2").unwrap()), bind: Some(Bind::Loopback), bot: true }
}

fn good_document() -> Document {
    Document::parse("{channels:{telegram:{enabled:true,botToken:'example'}},auth:{order:{}}}").unwrap()
}

/// The findings of all rules, at a time at which all lines count.
fn found(lines: &[Line], document: Option<&Document>, state: Option<(&Server, &Answer)>) -> Vec<(Rule, Finding)> {
    let now = lines.iter().filter_map(|line| line.time).max().unwrap_or(Timestamp::UNIX_EPOCH);
    let expected = expected();
    let evidence = Evidence { now, lines, document, state, expected: &expected };
    RULES.iter().filter_map(|(rule, detect)| Some((*rule, detect(&evidence)?))).collect()
}

fn rules(lines: &[Line]) -> Vec<Rule> {
    found(lines, Some(&good_document()), None).into_iter().map(|(rule, _)| rule).collect()
}

#[test]
fn every_rule_that_reads_logs_has_an_example() {
    assert!(EXAMPLES.len() >= 8);
    for example in EXAMPLES.iter() {
        let is_recorded = !example.console.is_empty() && !example.journal.is_empty();
        assert!(is_recorded, "{}: samples/rules has no recorded log of it", example.rule);
        // An abort writes nothing into the log file.
        assert_eq!(example.file.is_empty(), example.rule == Rule::OutOfMemory, "{}", example.rule);
    }
}

#[test]
fn each_rule_finds_its_own_example_and_no_others() {
    for example in EXAMPLES.iter() {
        for (form, (lines, confidence)) in example.forms().iter().zip(example.confidences()).enumerate() {
            let found = found(lines, Some(&good_document()), None);
            let found_rules: Vec<(Rule, Confidence)> =
                found.iter().map(|(rule, finding)| (*rule, finding.confidence)).collect();
            let own: Vec<(Rule, Confidence)> =
                confidence.into_iter().map(|confidence| (example.rule, confidence)).collect();
            assert_eq!(found_rules, own, "{}, form {form}: {found:?}", example.rule);
        }
    }
}

#[test]
fn what_is_found_is_told() {
    let detail = |rule: Rule| {
        let [_, file, journal] = example(rule).forms();
        let lines = [file, journal].concat();
        found(&lines, Some(&good_document()), None).remove(0).1.detail
    };
    assert_eq!(detail(Rule::NoApiKey), Detail::NoApiKey { provider: "remote".into() });
    assert_eq!(detail(Rule::ExitLoop), Detail::ExitLoop { exits: 3 });
    assert_eq!(detail(Rule::PortTaken), Detail::PortTaken { address: Some("ws://127.0.0.1:18789".into()) });
    assert_eq!(detail(Rule::RateLimited), Detail::RateLimited { turns: 3, model: Some("rl/fake-429".into()) });
    assert_eq!(detail(Rule::BotChannel), Detail::BotChannel(Channel::Refused));
    let Detail::UnknownKey { message } = detail(Rule::UnknownKey) else { panic!() };
    assert!(message.contains("Unrecognized key"), "{message}");
}

#[test]
fn what_is_told_holds_no_secret() {
    let line = "2026-11-15T01:50:34.924+00:00 [telegram] Telegram bot token unauthorized: 123456789:AAexample_example-example token=abc";
    let found = found(&console(line), Some(&good_document()), None);
    assert_eq!(found[0].1.excerpt, "Telegram bot token unauthorized: *** token=***");
}

#[test]
fn a_healthy_instance_has_no_finding() {
    let lines = [
        file(include_str!("../../samples/signals.file.jsonl")),
        console(include_str!("../../samples/signals.console.txt")),
        console(include_str!("../../samples/console-style-json.jsonl")),
    ]
    .concat();
    assert_eq!(rules(&lines), []);
}

/// A multi-line reply is printed to the console as it is, including lines without a time. A line with a time looks
/// exactly like OpenClaw's own. In the log file a reply to POST /v1/chat/completions is a line without a subsystem.
#[test]
fn a_chat_reply_proves_nothing() {
    for example in EXAMPLES.iter() {
        for line in example.console.lines() {
            let record = serde_json::json!({"MESSAGE": line, "_PID": "4711", "_UID": "0", "MESSAGE_ID": "98e322203f7a4ed290d09fe03c09fe15",
                "EXIT_CODE": "exited", "EXIT_STATUS": "1"});
            let lines = vec![Line::from_journal(record.to_string().as_bytes()).unwrap(); 5];
            for (rule, finding) in found(&lines, Some(&good_document()), None) {
                assert_eq!(finding.confidence, Confidence::Hearsay, "{rule}: {line}");
            }
        }
    }
    // Text of a user or a model inside of other lines means nothing.
    for quote in [
        "2026-11-15T01:33:48.440+00:00 [ws] No API key found for provider \"remote\".",
        "2026-11-15T01:33:48.440+00:00 [agent/embedded] said: FATAL ERROR: JavaScript heap out of memory",
        "he said: FATAL ERROR: JavaScript heap out of memory",
        "2026-11-15T01:33:48.440+00:00 [agent/embedded] Rate limit reached for requests",
        "an Unrecognized key: \"x\" is what it said",
        "another gateway instance is already listening on ws://127.0.0.1:18789",
        "2026-11-15T01:33:48.440+00:00 [ws] already running under systemd; waiting 5000ms",
        "oc@i4.service: Main process exited, code=exited, status=1/FAILURE",
        "2026-11-15T01:41:07.328+00:00 [session-sqlite] slow outcome=rejected exitCode=1",
    ] {
        assert_eq!(rules(&vec![Line::from_console(quote.as_bytes()); 5]), [], "{quote}");
    }
}

#[test]
fn a_series_counts_within_five_minutes() {
    let lines = journal(&example(Rule::ExitLoop).journal);
    let exits: Vec<Line> = lines.into_iter().filter(|line| line.exit().is_some()).collect();
    assert_eq!(rules(&exits), [Rule::ExitLoop]);
    assert_eq!(rules(&exits[1..]), []);
    // Another gateway with the same state is the cause of all of them.
    let mut lease = file(include_str!("../../samples/rules/6.lease.jsonl"));
    lease[0].time = exits[0].time;
    assert_eq!(rules(&[exits.clone(), lease].concat()), [Rule::PortTaken]);
    let mut spread = exits.clone();
    spread[0].time = spread[0].time.map(|time| time - SignedDuration::from_mins(6));
    assert_eq!(rules(&spread), []);
    // One turn is not three, however often it tried.
    let turns = example(Rule::RateLimited);
    assert_eq!(rules(&file(&turns.file)), []);
    assert_eq!(rules(&vec![file(&turns.file); 9].concat()), []);
    // An ordinary restart waits too.
    assert_eq!(rules(&file(&example(Rule::NotListening).file)[1..2]), []);
}

/// With fallback models, as we configure every instance, a turn never logs that it ended, only that it goes on to the
/// next model.
#[test]
fn a_limit_is_found_where_other_models_are_tried() {
    let lines = file(include_str!("../../samples/rules/8.fallbacks.jsonl"));
    let found = found(&lines, Some(&good_document()), None);
    let [(Rule::RateLimited, finding)] = found.as_slice() else { panic!("{found:?}") };
    let detail = Detail::RateLimited { turns: 3, model: Some("tidepool/gemini-2.5-flash".into()) };
    assert_eq!((finding.confidence, &finding.detail), (Confidence::Logged, &detail));
    // Two turns count as two, however many models they tried.
    let last = lines[8].field("runId").unwrap().to_owned();
    let two: Vec<Line> = lines.into_iter().filter(|line| line.field("runId") != Some(&last)).collect();
    assert_eq!((rules(&two), two.len()), (vec![], 6));
}

/// A gateway of the same instance that was started by hand has its state. The second one ends before it reaches the
/// port: by the lock in /tmp or, inside a cell, by the lease in the state folder.
#[test]
fn a_gateway_of_the_same_state_is_found() {
    for sample in [include_str!("../../samples/rules/6.state.jsonl"), include_str!("../../samples/rules/6.lease.jsonl")]
    {
        let found = found(&file(sample), Some(&good_document()), None);
        let [(Rule::PortTaken, finding)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((finding.confidence, &finding.detail), (Confidence::Logged, &Detail::PortTaken { address: None }));
    }
}

#[test]
fn a_key_that_is_missing_is_found_in_the_configuration_too() {
    let rules_of = |provider: &str| {
        let text = format!(
            "{{models:{{providers:{{tidepool:{{baseUrl:'http://10.0.0.1/v1',models:[{{id:'a'}}]{provider}}}}}}},
            agents:{{defaults:{{model:{{primary:'tidepool/a'}}}}}},channels:{{telegram:{{botToken:'x'}}}}}}"
        );
        let document = Document::parse(&text).unwrap();
        found(&[], Some(&document), None)
            .into_iter()
            .map(|(_, finding)| (finding.confidence, finding.detail))
            .collect::<Vec<_>>()
    };
    let missing = vec![(Confidence::Fact, Detail::NoApiKey { provider: "tidepool".into() })];
    assert_eq!(rules_of(""), missing);
    assert_eq!(rules_of(",apiKey:''"), missing);
    assert_eq!(rules_of(",apiKey:'sk-x'"), []);
    assert_eq!(rules_of(",apiKey:{source:'env',id:'KEY'}"), [], "a reference is no text");
}

#[test]
fn memory_is_the_kernels_word_or_an_abort() {
    let oom = r#"{"MESSAGE":"x: Failed with result 'oom-kill'.","MESSAGE_ID":"d9b373ed55a64feb8242e02dbe79a49c","UNIT_RESULT":"oom-kill","_PID":"1","_UID":"0"}"#;
    let found_by = |lines: &[Line], result: &str| {
        let answer = Answer { unit: State { result: result.into(), ..State::default() }, ..Answer::default() };
        found(lines, Some(&good_document()), Some((&Server::default(), &answer)))
    };
    assert_eq!(found_by(&journal(oom), "success")[0].1.confidence, Confidence::Fact);
    assert_eq!(found_by(&[], "oom-kill")[0].1.confidence, Confidence::Fact);
    // The last of several times counts.
    let at = |us: &str| oom.replacen('{', &format!("{{\"__REALTIME_TIMESTAMP\":\"{us}\","), 1);
    let twice = found_by(&journal(&format!("{}\n{}", at("1000000"), at("9000000"))), "success");
    assert_eq!(twice[0].1.time, Timestamp::from_second(9).ok());
    assert_eq!(found_by(&[], "signal"), []);
    let killed = r#"{"MESSAGE":"x","MESSAGE_ID":"98e322203f7a4ed290d09fe03c09fe15","EXIT_CODE":"killed","EXIT_STATUS":"9","_PID":"1","_UID":"0"}"#;
    assert_eq!(found_by(&journal(killed), "signal"), []);
}

#[test]
fn a_refused_start_for_older_settings_is_rule_2_on_a_used_state_too() {
    let line = "2026-11-15T01:42:30.726+00:00 Gateway failed to start: OpenClaw migration inputs changed during startup; refusing to report the gateway ready.";
    let found = found(&console(line), None, None);
    assert_eq!((found[0].0, &found[0].1.detail), (Rule::ExitLoop, &Detail::Migration));
}

#[test]
fn profiles_are_found_and_taken_out_with_their_order() {
    let text = "{auth:{profiles:{'remote:default':{provider:'remote',mode:'oauth'}},order:{remote:['remote:default']}},channels:{telegram:{botToken:'x'}}}";
    let mut document = Document::parse(text).unwrap();
    let found_in = |document: &Document| found(&[], Some(document), None);
    let found = found_in(&document);
    assert_eq!((found[0].0, found.len()), (Rule::AuthProfiles, 1));
    assert_eq!(found[0].1.detail, Detail::AuthProfiles { ordered: true });
    assert!(remove_auth_profiles(&mut document).unwrap());
    assert_eq!(document.value(), serde_json::json!({"channels": {"telegram": {"botToken": "x"}}}));
    assert_eq!(found_in(&document), []);
    assert!(!remove_auth_profiles(&mut document).unwrap());
}

#[test]
fn a_bots_channel_is_looked_at_where_a_bot_is_bound() {
    let channel = |text: &str, bot: bool| {
        let document = Document::parse(text).unwrap();
        let expected = Expected { bot, ..expected() };
        let now = Timestamp::UNIX_EPOCH;
        let evidence = Evidence { now, lines: &[], document: Some(&document), state: None, expected: &expected };
        bot_channel::detect(&evidence).map(|finding| finding.detail)
    };
    let broken = |channel: Channel| Some(Detail::BotChannel(channel));
    assert_eq!(channel("{}", true), broken(Channel::Missing));
    assert_eq!(channel("{channels:{telegram:{enabled:false,botToken:'x'}}}", true), broken(Channel::Disabled));
    assert_eq!(channel("{channels:{telegram:{enabled:true}}}", true), broken(Channel::NoToken));
    assert_eq!(channel("{channels:{telegram:{botToken:''}}}", true), broken(Channel::NoToken));
    for good in ["botToken:'x'", "botToken:{source:'env',id:'T'}", "tokenFile:'/t'", "accounts:{a:{}}"] {
        assert_eq!(channel(&format!("{{channels:{{telegram:{{{good}}}}}}}"), true), None, "{good}");
    }
    assert_eq!(channel("{}", false), None);
}

fn listening(addresses: &[&str], service: Option<&str>, health: Option<Http>) -> (Server, Answer) {
    let unit = State { active: Active::Active, main_pid: Some(5), started_us: Some(1_000_000), ..State::default() };
    let listener = |address: &&str| Listener { address: address.parse().unwrap(), port: 18909 };
    let owner = |service: &str| {
        let service = Service { name: service.into(), user: None };
        Process { pid: 5, name: "x".into(), service: Some(service), ..Process::default() }
    };
    let answer = Answer {
        complete: true,
        unit,
        listeners: addresses.iter().map(listener).collect(),
        owners: service.map(owner).into_iter().collect(),
        healthz: health,
        ..Answer::default()
    };
    (Server { uptime_s: Some(1000.0), ..Server::default() }, answer)
}

fn live(status: u16, body: &str) -> Option<Http> {
    Some(Http { status, body: body.into() })
}

#[test]
fn an_active_unit_must_listen_where_it_should() {
    const OWN: Option<&str> = Some("oc@i2.service");
    let look = |(server, answer): (Server, Answer), bind: Bind| {
        let expected = Expected { bind: Some(bind), ..expected() };
        let state = Some((&server, &answer));
        let evidence = Evidence { now: Timestamp::UNIX_EPOCH, lines: &[], document: None, state, expected: &expected };
        not_listening::detect(&evidence).map(|finding| {
            assert_eq!(finding.confidence, Confidence::Fact);
            finding.detail
        })
    };
    let ok = || live(200, r#"{"ok":true,"status":"live"}"#);
    let stranger = live(404, "<!DOCTYPE HTML>");
    assert_eq!(look(listening(&["127.0.0.1", "::1"], OWN, ok()), Bind::Loopback), None);
    assert_eq!(look(listening(&["127.0.0.1"], None, ok()), Bind::Loopback), None);
    assert_eq!(look(listening(&["0.0.0.0"], OWN, ok()), Bind::Lan), None);
    assert_eq!(look(listening(&["::"], OWN, ok()), Bind::Lan), None);
    assert_eq!(look(listening(&[], None, None), Bind::Loopback), Some(Detail::NotListening(Listening::Nobody)));
    let elsewhere =
        |address: &str| Some(Detail::NotListening(Listening::Elsewhere { addresses: vec![address.into()] }));
    assert_eq!(look(listening(&["0.0.0.0"], OWN, ok()), Bind::Loopback), elsewhere("0.0.0.0"));
    assert_eq!(look(listening(&["127.0.0.1"], OWN, ok()), Bind::Lan), elsewhere("127.0.0.1"));
    let held = look(listening(&["127.0.0.1"], Some("stranger.service"), stranger.clone()), Bind::Loopback);
    assert!(matches!(held, Some(Detail::NotListening(Listening::Stranger { owner: Some(_) }))));
    let unseen = look(listening(&["127.0.0.1"], None, stranger), Bind::Loopback);
    assert_eq!(unseen, Some(Detail::NotListening(Listening::Stranger { owner: None })));

    // It is still starting, does not run, or was not checked completely.
    let mut starting = listening(&[], None, None);
    starting.0.uptime_s = Some(60.0);
    assert_eq!(look(starting, Bind::Loopback), None);
    let mut failed = listening(&[], None, None);
    failed.1.unit.active = Active::Failed;
    assert_eq!(look(failed, Bind::Loopback), None);
    let mut cut = listening(&[], None, None);
    cut.1.complete = false;
    assert_eq!(look(cut, Bind::Loopback), None);
}

proptest! {
    #[test]
    fn fuzz_rules_look_at_any_lines(
        texts in proptest::collection::vec("(\\PC|[\\n\\t]){0,80}", 0..8),
        pick in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..40), 0..8),
    ) {
        let recorded: Vec<&str> = EXAMPLES.iter().flat_map(|e| e.console.lines().chain(e.file.lines()).chain(e.journal.lines())).collect();
        let mut lines: Vec<Line> = texts.iter().map(|text| Line::from_console(text.as_bytes())).collect();
        for (which, at, length) in pick {
            let mut bytes = which.get(&recorded).as_bytes().to_vec();
            let start = at.index(bytes.len());
            bytes.drain(start..(start + length).min(bytes.len()));
            lines.push(Line::from_console(&bytes));
            lines.extend(Line::from_file(&bytes));
            lines.extend(Line::from_journal(&bytes));
        }
        for (_, finding) in found(&lines, Some(&good_document()), None) {
            prop_assert!(finding.excerpt.chars().count() <= EXCERPT + 1);
        }
    }
}
