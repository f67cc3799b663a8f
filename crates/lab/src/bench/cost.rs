//! The CPU time and memory of processes, as the kernel counts them.

use std::time::Duration;

use base::{Error, Result};

/// The CPU time of these processes together.
pub fn cpu(pids: &[u32]) -> Result<Duration> {
    let ticks_per_second = rustix::param::clock_ticks_per_second();
    let mut ticks = 0;
    for pid in pids {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(Error::internal)?;
        // The name in parentheses may contain anything; user and system time are the 14th and 15th field.
        let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
        ticks += fields.split_whitespace().skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum::<u64>();
    }
    Ok(Duration::from_secs_f64(ticks as f64 / ticks_per_second as f64))
}

/// The peak memory of a process so far, in MiB.
pub fn peak_memory(pid: u32) -> Result<u64> {
    Ok(kib(pid, "VmHWM:")? >> 10)
}

/// The present memory of a process, in KiB.
pub fn memory(pid: u32) -> Result<u64> {
    kib(pid, "VmRSS:")
}

fn kib(pid: u32, name: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(Error::internal)?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.ok_or_else(|| Error::internal(format_args!("no {name}")))
}
