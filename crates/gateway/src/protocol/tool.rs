//! Which tools a request may name. Tools that the client runs itself cost their tokens. Those that the provider runs cost
//! more, at prices that the gateway does not know, or reach what others keep in the same account: they are refused. A
//! tool that is not known is refused too, since providers add new ones of both sorts.

use std::borrow::Cow;

use serde::Deserialize;

use crate::error::Refusal;
use crate::field::Field;

/// What decides about a tool.
#[derive(Deserialize)]
pub struct Tool<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow, default)]
    environment: Field<'a>,
    #[serde(borrow, default)]
    execution: Field<'a>,
    #[serde(borrow, default)]
    tools: Field<'a>,
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

/// Whether a tool of this type is run by the client.
pub type IsClients = fn(&str, &Tool<'_>) -> bool;

/// Checks the tools of a request, those inside of groups included.
pub fn check(tools: Field<'_>, usual: &str, is_clients: IsClients) -> Result<(), Refusal> {
    if !tools.is_given() {
        return Ok(());
    }
    let refused = |message: String| Err(Refusal::bad_request(message).about("tools"));
    let Some(all) = tools.read::<Vec<Tool<'_>>>() else {
        return refused("tools: must be a list of objects, each with one type".into());
    };
    for tool in &all {
        let kind = match tool.kind.json() {
            None => Cow::Borrowed(usual),
            Some(json) => match serde_json::from_str::<Cow<'_, str>>(json) {
                Ok(kind) => kind,
                Err(_) => return refused("tools: a type must be a string".into()),
            },
        };
        if !is_clients(&kind, tool) {
            let kind: String = kind.chars().take(60).collect();
            return refused(format!(
                "tools: `{kind}` is run by the provider or not known here; only tools that the client runs are allowed"
            ));
        }
        check(tool.tools, usual, is_clients)?;
    }
    Ok(())
}

impl Tool<'_> {
    pub fn is_in_local_environment(&self) -> bool {
        self.environment.read::<Typed<'_>>().is_some_and(|environment| environment.kind == "local")
    }

    pub fn is_executed_by_client(&self) -> bool {
        self.execution.read::<Cow<'_, str>>().is_some_and(|by| by == "client")
    }
}
