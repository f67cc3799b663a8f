//! What a cell costs the real OpenClaw: the time until it answers, its memory, and a look of the sweep at it. `make bench PART="cell"`.

use std::time::Instant;

use fleet::assistant::Defaults;
use serde_json::json;

use crate::kit::assistant::{START, model_server};
use crate::kit::hosts::{CURRENT, Ground, fleet, is_real};

const PASSES: usize = 2;
const STARTS: usize = 3;

/// Starts the unit of $1 and prints the milliseconds until the gateway on port $2 is ready, and the KiB that the processes of
/// its user $3 take.
const START_AND_MEASURE: &str = r#"
    systemctl stop "openclaw-$1"
    began=$(date +%s%N)
    systemctl start "openclaw-$1"
    for try in $(seq 3000); do
        if curl -fs -o /dev/null "http://127.0.0.1:$2/readyz"; then break; fi
        [ "$try" -lt 3000 ] || exit 1
        sleep 0.02
    done
    printf '%s ' $((($(date +%s%N) - began) / 1000000))
    for pid in $(pgrep -u "$3"); do cat "/proc/$pid/smaps_rollup"; done | awk '/^Pss:/ { kib += $2 } END { print kib }'
"#;

#[derive(Default)]
struct Cost {
    start_ms: Vec<f64>,
    memory_mib: Vec<f64>,
    sweep_ms: Vec<f64>,
}

impl Cost {
    async fn measure(&mut self, ground: &Ground, id: &str) {
        let shown = ground.show(id).await;
        let (port, user) = (shown["gateway_port"].to_string(), shown["runs_as"].as_str().unwrap());
        for _ in 0..STARTS {
            let measured = ground.sh(START_AND_MEASURE, &[id, &port, user]).await;
            let mut numbers = measured.split_whitespace().map(|number| number.parse::<f64>().unwrap());
            self.start_ms.push(numbers.next().unwrap());
            self.memory_mib.push(numbers.next().unwrap() / 1024.0);
        }
        // The first look after a start finds more to do than the later ones.
        fleet::health::check(&ground.site.app).await.unwrap();
        for _ in 0..5 {
            let began = Instant::now();
            fleet::health::check(&ground.site.app).await.unwrap();
            self.sweep_ms.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
    }
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cell_costs_is_measured_beside_an_assistant_without_one() {
    let fleet = fleet("real::cell_cost").expect("make test-real starts hosts");
    let host = fleet.host("h4");
    assert!(is_real(&host, CURRENT).await, "OpenClaw {CURRENT} is not on h4");
    let gateway_url = model_server(&host).await;
    let assistants = Defaults { gateway_url, start_limit: START, least_memory: 64 << 20, ..Default::default() };
    let mut ground = Ground::on(fleet, "h4", assistants).await;
    let id = ground.provisioned(json!({})).await;
    let (mut with, mut without) = (Cost::default(), Cost::default());
    for _ in 0..PASSES {
        for (confined, cost) in [(false, &mut without), (true, &mut with)] {
            ground.run("confine_instance", json!({"instance_id": id, "confined": confined})).await;
            assert_eq!(ground.show(&id).await["cell"], if confined { "confined" } else { "unconfined" });
            cost.measure(&ground, &id).await;
        }
    }
    let line = |what: &str, with: &[f64], without: &[f64]| {
        let (with, without) = (median(with), median(without));
        format!("{what} {with:.0} with it, {without:.0} without ({:.2} ×)", with / without)
    };
    testkit::publish(
        "cell",
        &format!(
            "a cell costs: {}; {}; {}",
            line("ms to ready", &with.start_ms, &without.start_ms),
            line("MiB", &with.memory_mib, &without.memory_mib),
            line("ms a sweep", &with.sweep_ms, &without.sweep_ms),
        ),
    );
    assert!(median(&with.start_ms) < 2.0 * median(&without.start_ms), "{:?} {:?}", with.start_ms, without.start_ms);
    ground.end().await;
}
