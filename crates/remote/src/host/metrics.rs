//! How busy a server is: processors, memory, disk, load.

use super::Host;
use super::command::{Actor, Command};
use super::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    pub cpu_percent: f64,
    pub memory_percent: f64,
    /// Of the root file system.
    pub disk_percent: f64,
    pub load_1m: f64,
    pub memory_total: u64,
    pub memory_available: u64,
}

/// Prints the input of `parse`. CPU use is computed from two readings.
const SCRIPT: &str = r#"
head -n 1 /proc/stat
echo "load $(cat /proc/loadavg)"
grep -E '^(MemTotal|MemAvailable):' /proc/meminfo
echo "disk $(df -Pk / | tail -n 1)"
sleep 0.25
head -n 1 /proc/stat
"#;

pub async fn collect(host: &Host) -> Result<Metrics> {
    let output = host.succeed(&Command::script("read-metrics", &[SCRIPT]).by(Actor::Login)).await?;
    parse(&output.text())
}

pub fn parse(text: &str) -> Result<Metrics> {
    let missing = |what: &str| Error::odd("a server's metrics", format_args!("no {what}"));
    let line = |prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix)).ok_or_else(|| missing(prefix));
    let kib = |prefix: &str| {
        let number = line(prefix)?.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        number.map(|kib| kib.saturating_mul(1024)).ok_or_else(|| missing(prefix))
    };
    let looks: Vec<Ticks> =
        text.lines().filter_map(|line| line.strip_prefix("cpu ")).filter_map(Ticks::parse).collect();
    let [before, after] = looks.as_slice() else { return Err(missing("two looks at the processors")) };
    let (memory_total, memory_available) = (kib("MemTotal:")?, kib("MemAvailable:")?);
    let load = line("load ")?.split_whitespace().next().and_then(|word| word.parse().ok());
    Ok(Metrics {
        cpu_percent: before.busy_until(after),
        memory_percent: percent(memory_total.saturating_sub(memory_available), memory_total),
        disk_percent: disk(line("disk ")?).ok_or_else(|| missing("disk"))?,
        load_1m: load.ok_or_else(|| missing("load"))?,
        memory_total,
        memory_available,
    })
}

/// Used and available space, as `df` counts: space that is reserved for root is in neither. The line is parsed from its
/// end, because a file system's name may contain spaces.
fn disk(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [.., used, available, _percent, _mount] = words.as_slice() else { return None };
    let (used, available): (u64, u64) = (used.parse().ok()?, available.parse().ok()?);
    Some(percent(used, used.saturating_add(available)))
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

struct Ticks {
    all: u64,
    idle: u64,
}

impl Ticks {
    /// User, nice, system, idle, iowait, irq, softirq, steal. Guests follow, and are counted in user already.
    fn parse(line: &str) -> Option<Ticks> {
        let numbers: Option<Vec<u64>> = line.split_whitespace().take(8).map(|word| word.parse().ok()).collect();
        let numbers = numbers.filter(|numbers| numbers.len() >= 5)?;
        let sum = |numbers: &[u64]| numbers.iter().copied().fold(0, u64::saturating_add);
        Some(Ticks { all: sum(&numbers), idle: sum(&numbers[3..5]) })
    }

    fn busy_until(&self, after: &Ticks) -> f64 {
        let all = after.all.saturating_sub(self.all);
        percent(all.saturating_sub(after.idle.saturating_sub(self.idle)), all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "cpu  1000 0 500 8000 500 0 0 0 7 0\nload 0.42 0.20 0.10 1/345 6789\nMemTotal:       24682740 kB\n\
        MemAvailable:   12341370 kB\ndisk my disk    1000 300 100 75% /\ncpu  1010 0 510 8070 510 0 0 0 9 0\n";

    #[test]
    fn percentages_are_computed_from_what_the_kernel_says() {
        let metrics = parse(TEXT).unwrap();
        assert_eq!(
            (metrics.cpu_percent, metrics.memory_percent, metrics.disk_percent, metrics.load_1m),
            (20.0, 50.0, 75.0, 0.42)
        );
        assert_eq!(metrics.memory_total, 24_682_740 * 1024);
    }

    #[test]
    fn a_half_answer_is_no_answer() {
        for gone in ["cpu  1010", "load", "MemAvailable", "disk"] {
            let text: String =
                TEXT.lines().filter(|line| !line.starts_with(gone)).map(|line| format!("{line}\n")).collect();
            assert!(parse(&text).is_err(), "without {gone}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_server_says_is_a_percentage_or_an_error(text in "(cpu |load |MemTotal:|MemAvailable:|disk |[0-9]{1,20} |\n|%){0,60}") {
            if let Ok(metrics) = parse(&text) {
                for value in [metrics.cpu_percent, metrics.memory_percent, metrics.disk_percent] {
                    prop_assert!((0.0..=100.0).contains(&value), "{value}");
                }
            }
        }
    }
}
