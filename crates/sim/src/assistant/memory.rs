//! The gateway's state: conversations and running answers.

use std::collections::HashMap;

use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(super) struct Memory {
    sessions: HashMap<String, Session>,
    runs: HashMap<String, Run>,
}

/// A session that is listed as running although nobody sent it a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranded {
    /// It has no run, and ends when it is aborted.
    WithoutRun,
    /// It has no run, and is listed as running even after it was aborted.
    ForGood,
    /// It has a run.
    WithRun,
}

#[derive(Debug, Default)]
struct Session {
    stranded: Option<Stranded>,
    label: Option<String>,
    model: Option<String>,
    messages: Vec<Value>,
    updated_at: i64,
}

#[derive(Debug)]
struct Run {
    session: String,
    text: String,
    over: bool,
    aborted: bool,
    /// The usage that the model reported, if one was asked.
    usage: Option<Value>,
}

/// Whether a message starts a new run.
pub(super) enum Begun {
    New,
    InFlight,
    Over,
}

impl Memory {
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    pub fn create(&mut self, key: &str, label: Option<&str>, model: Option<&str>) {
        let session = self.sessions.entry(key.to_owned()).or_default();
        session.label = label.map(str::to_owned).or(session.label.take());
        session.model = model.map(str::to_owned).or(session.model.take());
        session.updated_at = now();
    }

    /// Adds a session that is listed as running since `at`, in milliseconds since 1970.
    pub fn strand(&mut self, key: &str, stranded: Stranded, at: i64) {
        let session = self.sessions.entry(key.to_owned()).or_default();
        (session.stranded, session.updated_at) = (Some(stranded), at);
    }

    /// Ends a session that is listed as running, if it can be ended.
    pub fn unstrand(&mut self, key: &str) {
        if let Some(session) = self.sessions.get_mut(key)
            && session.stranded != Some(Stranded::ForGood)
        {
            session.stranded = None;
        }
    }

    pub fn begin(&mut self, session: &str, run: &str, said: Value) -> Begun {
        match self.runs.get(run) {
            Some(run) if run.over => return Begun::Over,
            Some(_) => return Begun::InFlight,
            None => {}
        }
        let begun = Run { session: session.to_owned(), text: String::new(), over: false, aborted: false, usage: None };
        self.runs.insert(run.to_owned(), begun);
        let session = self.sessions.entry(session.to_owned()).or_default();
        session.messages.push(said);
        session.updated_at = now();
        Begun::New
    }

    /// Stores the usage that the model reported for an answer.
    pub fn used(&mut self, run: &str, usage: Value) {
        if let Some(run) = self.runs.get_mut(run) {
            run.usage = Some(usage);
        }
    }

    /// Adds to an answer. Returns the text so far, or `None` if the answer was aborted meanwhile.
    pub fn grow(&mut self, run: &str, delta: &str) -> Option<String> {
        let run = self.runs.get_mut(run).filter(|run| !run.over)?;
        run.text.push_str(delta);
        Some(run.text.clone())
    }

    /// Ends an answer and stores it in its session. `None` if it had ended already.
    pub fn end(&mut self, id: &str, aborted: bool) -> Option<String> {
        let run = self.runs.get_mut(id).filter(|run| !run.over)?;
        run.over = true;
        run.aborted = aborted;
        let text = run.text.clone();
        let mut message = json!({"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": now(), "stopReason": "stop"});
        if let Some(usage) = &run.usage {
            message["usage"] = usage.clone();
        }
        if aborted {
            message["openclawAbort"] = json!({"aborted": true, "runId": id});
        }
        let session = self.sessions.entry(run.session.clone()).or_default();
        session.messages.push(message);
        session.updated_at = now();
        Some(text)
    }

    /// The running answers of a session.
    pub fn under_way(&self, session: &str, run: Option<&str>) -> Vec<String> {
        let of = |(id, r): (&String, &Run)| {
            (r.session == session && !r.over && run.is_none_or(|run| run == id)).then(|| id.clone())
        };
        self.runs.iter().filter_map(of).collect()
    }

    pub fn break_off(&mut self) {
        let all: Vec<String> = self.runs.iter().filter(|(_, run)| !run.over).map(|(id, _)| id.clone()).collect();
        for id in all {
            self.end(&id, true);
        }
    }

    pub fn history(&self, key: &str, limit: usize) -> Value {
        let empty = Session::default();
        let session = self.sessions.get(key).unwrap_or(&empty);
        let from = session.messages.len().saturating_sub(limit);
        let mut answer = json!({
            "sessionKey": key,
            "messages": session.messages[from..],
            "hasMore": from > 0,
            "totalMessages": session.messages.len(),
            "sessionInfo": self.info(key, session),
        });
        if let Some(id) = self.under_way(key, None).first()
            && let Some(run) = self.runs.get(id)
        {
            answer["inFlightRun"] = json!({"runId": id, "text": run.text, "events": []});
        }
        answer
    }

    pub fn list(&self) -> Vec<Value> {
        let mut keys: Vec<&String> = self.sessions.keys().collect();
        keys.sort();
        keys.into_iter().map(|key| self.info(key, &self.sessions[key])).collect()
    }

    fn info(&self, key: &str, session: &Session) -> Value {
        let has_run = !self.under_way(key, None).is_empty() || session.stranded == Some(Stranded::WithRun);
        let running = has_run || session.stranded.is_some();
        json!({
            "key": key, "label": session.label, "model": session.model.as_deref().unwrap_or("sim-1"), "modelProvider": "sim",
            "status": if running { "running" } else { "done" }, "hasActiveRun": has_run, "updatedAt": session.updated_at,
        })
    }
}

pub(super) fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
