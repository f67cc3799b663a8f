//! The hostile tenant in the real OpenClaw: the attacks of testbed/hostile, run by its own shell tool inside of its cell.

use fleet::assistant::Defaults;
use serde_json::json;

use crate::hostile::{Outcome, attacks, variables};
use crate::kit::assistant::{START, Talk, model_server};
use crate::kit::hosts::{CURRENT, Ground, fleet, is_real};

#[tokio::test(flavor = "multi_thread")]
async fn is_refused_in_its_own_shell_tool() {
    let fleet = fleet("real::hostile").expect("make test-real starts hosts");
    assert!(is_real(&fleet.host("h4"), CURRENT).await, "OpenClaw {CURRENT} is not on h4");
    let gateway_url = model_server(&fleet.host("h4")).await;
    let assistants = Defaults { gateway_url, start_limit: START, least_memory: 64 << 20, ..Default::default() };
    let mut ground = Ground::on(fleet, "h4", assistants).await;
    let own = ground.provisioned(json!({})).await;
    let neighbour = ground.provisioned(json!({})).await;
    let (shown, env) = (ground.show(&own).await, variables(&ground, &own, &neighbour).await);
    assert_eq!(shown["cell"], "confined");
    // The attacks lie in the tenant's own folder, as whoever holds the assistant would have it write them.
    let write = r#"install -d -m 700 -o "$1" -g "$1" "$2" && cat >"$2/$3" && chown "$1:" "$2/$3""#;
    let put = async |name: &str, text: String| {
        let args = [env["OWN_USER"].as_str(), env["SCRATCH"].as_str(), name];
        ground.host.succeed(&remote::host::Command::script("test", &[write]).args(args).stdin(text)).await.unwrap();
    };
    put("variables", env.iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect()).await;
    let port = u16::try_from(shown["gateway_port"].as_i64().unwrap()).unwrap();
    let mut talk = Talk::open(&ground.host, port, shown["gateway_token"].as_str().unwrap()).await;
    let (mut refused, mut not_enforceable, mut succeeded) = (0, vec![], vec![]);
    for attack in attacks().into_iter().filter(|attack| attack.name != "links_in_a_loop") {
        put(&attack.name, attack.script.clone()).await;
        let command = format!("cd {0} && . ./variables && sh ./{1}; echo ended-with $?", env["SCRATCH"], attack.name);
        let (said, _) = talk.say(&format!("shell: {command}")).await;
        let status = said.rsplit_once("ended-with ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("{}: {said}", attack.name));
        match attack.outcome(status, &said) {
            Outcome::Refused => refused += 1,
            Outcome::NotEnforceable => not_enforceable.push(attack.name),
            Outcome::Succeeded => succeeded.push(format!("{}: {said}", attack.name)),
        }
    }
    println!(
        "measured: in the real shell tool {refused} refused, {} not enforceable here ({}), {} succeeded",
        not_enforceable.len(),
        not_enforceable.join(", "),
        succeeded.len()
    );
    assert!(succeeded.is_empty(), "{succeeded:#?}");
    assert!(refused > 40);
    ground.end().await;
}
