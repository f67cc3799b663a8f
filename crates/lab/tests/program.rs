//! The program itself. `make test` runs the demo in Chromium, `make bench` the benchmarks.

use std::process::Command;

const LAB: &str = env!("CARGO_BIN_EXE_tidepool-lab");

#[test]
fn it_demonstrates_and_measures_and_serves_nobody_else() {
    let help = Command::new(LAB).arg("--help").output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success() && text.contains("  demo ") && text.contains("  bench "), "{text}");
    assert!(!text.contains("  serve "), "{text}");
}

#[test]
fn a_setting_that_is_wrong_ends_it_with_one_line() {
    let ended = Command::new(LAB).args(["demo", "--roles", "nothing"]).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && said.starts_with("tidepool-lab: ") && said.lines().count() == 1, "{said}");
}
