//! An assistant's background activity: heartbeats and scheduled jobs. Each may call a model.

use base::Result;
use serde_json::{Value, json};

use crate::document::Document;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// As the owner has configured it.
    On,
    /// The instance has no holder, so it must spend nothing.
    Off,
}

const SCHEDULE: [&str; 2] = ["cron", "enabled"];
const HEARTBEAT: [&str; 4] = ["agents", "defaults", "heartbeat", "every"];

impl Background {
    pub fn apply(self, document: &mut Document) -> Result<()> {
        match self {
            Background::Off => {
                document.set(SCHEDULE, json!(false))?;
                document.set(HEARTBEAT, json!("0m"))?;
            }
            // We always switch off both. If only one is off, the owner chose that, and it stays.
            Background::On if is_off(document) => {
                document.remove(SCHEDULE)?;
                document.remove(HEARTBEAT)?;
                for emptied in [&SCHEDULE[..1], &HEARTBEAT[..3]] {
                    if document.get(emptied) == Some(json!({})) {
                        document.remove(emptied)?;
                    }
                }
            }
            Background::On => {}
        }
        Ok(())
    }
}

fn is_off(document: &Document) -> bool {
    document.get(SCHEDULE) == Some(Value::Bool(false)) && document.get_str(HEARTBEAT).as_deref() == Some("0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str, background: Background) -> Value {
        let mut document = Document::parse(text).unwrap();
        background.apply(&mut document).unwrap();
        let once = document.text().to_owned();
        background.apply(&mut document).unwrap();
        assert_eq!(document.text(), once);
        document.value()
    }

    #[test]
    fn off_stops_both_and_on_gives_both_back() {
        let off = after("{a: 1}", Background::Off);
        assert_eq!(
            off,
            json!({"a": 1, "cron": {"enabled": false}, "agents": {"defaults": {"heartbeat": {"every": "0m"}}}})
        );
        assert_eq!(after(&off.to_string(), Background::On), json!({"a": 1, "agents": {"defaults": {}}}));
    }

    #[test]
    fn what_the_owner_chose_stays() {
        for text in [
            r#"{"cron":{"enabled":false}}"#,
            r#"{"agents":{"defaults":{"heartbeat":{"every":"0m"}}}}"#,
            r#"{"agents":{"defaults":{"heartbeat":{"every":"5m"}}},"cron":{"enabled":true}}"#,
            "{}",
        ] {
            assert_eq!(after(text, Background::On).to_string(), text);
        }
        let kept = r#"{cron:{enabled:false,webhookToken:'x'},agents:{defaults:{heartbeat:{every:'0m',model:'m'}}}}"#;
        let expected = json!({"cron": {"webhookToken": "x"}, "agents": {"defaults": {"heartbeat": {"model": "m"}}}});
        assert_eq!(after(kept, Background::On), expected);
    }
}
