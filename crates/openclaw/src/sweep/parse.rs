//! Parses the script's output. It may be cut off anywhere and contain any bytes; unreadable parts are skipped.

use std::net::{IpAddr, Ipv6Addr};

use super::process::{container_of, service_of};
use super::{Answer, ConfigFile, Http, Listener, LogTail, Mark, Process, Server, Sweep, Target};
use crate::log::Line;
use crate::unit::{Confinement, State};

/// The limit for one kind of quoted text in one section; the script sends less.
const MOST: usize = 1024 * 1024;
/// The limit of processes of one kind.
const MOST_PROCESSES: usize = 500;

/// `targets` must be those that the script was made for, in the same order.
pub fn parse(output: &[u8], targets: &[Target]) -> Sweep {
    let mut sweep = Sweep { instances: vec![None; targets.len()], ..Sweep::default() };
    let mut reader = Reader::default();
    for line in output.split(|b| *b == b'\n') {
        reader.line(line, targets, &mut sweep);
    }
    // If the output was cut off, the received part of the last instance counts.
    reader.close(targets, &mut sweep);
    reader.server(&mut sweep.server);
    sweep
}

#[derive(Default)]
struct Reader {
    /// The instance whose section is being read.
    open: Option<usize>,
    section: Section,
    cpu: Vec<[u64; 2]>,
    memory: [Option<f64>; 2],
    disk: Option<f64>,
}

#[derive(Default)]
struct Section {
    answer: Answer,
    unit: String,
    healthz: Vec<u8>,
    readyz: Vec<u8>,
    /// Inode of the file, position of the text, length of the text.
    log: Option<[u64; 3]>,
    log_text: Vec<u8>,
    /// If the log was rotated: how much was added to the old file, and that text.
    rotated: Option<u64>,
    rotated_text: Vec<u8>,
    log_full: bool,
    journal_bytes: usize,
}

impl Reader {
    fn line(&mut self, line: &[u8], targets: &[Target], sweep: &mut Sweep) {
        // A label is short; the text after it is not trusted.
        let label = line.iter().take(20).position(|b| *b == b'|');
        if let Some(at) = label
            && line[..at].iter().all(|b| b.is_ascii_lowercase() || *b == b'-')
        {
            let (label, text) = (&line[..at], &line[at + 1..]);
            match self.open {
                Some(_) => self.section.quoted(label, text),
                None => self.server_text(label, text, &mut sweep.server),
            }
            return;
        }
        let Ok(words) = str::from_utf8(&line[..line.len().min(200)]) else { return };
        let words: Vec<&str> = words.split_ascii_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        match (words.first().copied(), self.open) {
            (Some("begin"), _) => {
                self.close(targets, sweep);
                self.open = number(1).and_then(|n| usize::try_from(n).ok()).filter(|n| *n < targets.len());
            }
            (Some("over"), _) => self.close(targets, sweep),
            (Some(word), Some(_)) => self.section.word(word, &words),
            (Some("time"), None) => sweep.server.time = words.get(1).and_then(|word| word.parse().ok()),
            (Some("cores"), None) => sweep.server.cores = number(1).and_then(|n| u32::try_from(n).ok()),
            (Some("gateway"), None) => push_process(&mut sweep.server.gateways, &words, "openclaw-gatewa"),
            (Some("done"), None) => sweep.complete = true,
            _ => {}
        }
    }

    fn close(&mut self, targets: &[Target], sweep: &mut Sweep) {
        let section = std::mem::take(&mut self.section);
        if let Some(number) = self.open.take()
            && let (Some(target), Some(place)) = (targets.get(number), sweep.instances.get_mut(number))
        {
            *place = Some(section.finish(target.mark));
        }
    }

    fn server_text(&mut self, label: &[u8], text: &[u8], server: &mut Server) {
        let text = String::from_utf8_lossy(&text[..text.len().min(4096)]);
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let first = || words.first().and_then(|word| word.parse::<f64>().ok()).filter(|n| n.is_finite());
        match label {
            b"uptime" => server.uptime_s = server.uptime_s.or_else(first),
            b"load" => server.load_1m = server.load_1m.or_else(first),
            b"cpu" if words.first() == Some(&"cpu") => self.cpu.extend(cpu_times(&words[1..])),
            b"memory" => {
                let slot = if text.starts_with("MemTotal:") { 0 } else { 1 };
                self.memory[slot] = words.get(1).and_then(|word| word.parse().ok());
            }
            // The fields are: file system, blocks, used, free, percent, folder. Count from the front, since the
            // folder's name may contain anything.
            b"disk" => {
                let percent = words.get(4).and_then(|word| word.strip_suffix('%')).and_then(|word| word.parse().ok());
                let percent = percent.filter(|p: &f64| (0.0..=100.0).contains(p));
                self.disk = self.disk.max_of(percent);
            }
            b"cgroup" | b"config-path" => describe_process(server.gateways.last_mut(), label, &text),
            _ => {}
        }
    }

    fn server(&self, server: &mut Server) {
        if let [.., first, last] = self.cpu[..] {
            let (busy, all) = (last[0].saturating_sub(first[0]), last[1].saturating_sub(first[1]));
            server.cpu_percent = (all > 0).then(|| (busy as f64 / all as f64 * 100.0).clamp(0.0, 100.0));
        }
        if let [Some(total), Some(available)] = self.memory
            && total > 0.0
        {
            server.memory_percent = Some(((total - available) / total * 100.0).clamp(0.0, 100.0));
        }
        server.disk_percent = self.disk;
    }
}

trait MaxOf {
    fn max_of(self, other: Self) -> Self;
}

impl MaxOf for Option<f64> {
    fn max_of(self, other: Option<f64>) -> Option<f64> {
        match (self, other) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }
}

/// Busy and total ticks. The fields are user, nice, system, idle, iowait, irq, softirq, steal; guest time is included
/// in the first two already.
fn cpu_times(words: &[&str]) -> Option<[u64; 2]> {
    let ticks: Vec<u64> = words.iter().take(8).map_while(|word| word.parse().ok()).collect();
    let all = ticks.iter().try_fold(0u64, |sum, n| sum.checked_add(*n))?;
    let idle = ticks.get(3)?.saturating_add(*ticks.get(4).unwrap_or(&0));
    Some([all.saturating_sub(idle), all])
}

fn push_process(list: &mut Vec<Process>, words: &[&str], name: &str) {
    if let Some(pid) = words.get(1).and_then(|word| word.parse().ok()).filter(|_| list.len() < MOST_PROCESSES) {
        list.push(Process { pid, name: name.to_owned(), ..Process::default() });
    }
}

fn describe_process(process: Option<&mut Process>, label: &[u8], text: &str) {
    let Some(process) = process else { return };
    match label {
        b"comm" if process.name.is_empty() => process.name = text.chars().take(15).collect(),
        b"cgroup" if process.service.is_none() && process.container.is_none() => {
            process.service = service_of(text);
            process.container = container_of(text);
        }
        b"config-path" if process.config_path.is_none() && !text.is_empty() => {
            process.config_path = Some(text.chars().take(1024).collect());
        }
        _ => {}
    }
}

impl Section {
    fn word(&mut self, word: &str, words: &[&str]) {
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        match word {
            "rss" => self.answer.rss = number(1).and_then(|kib| kib.checked_mul(1024)),
            "owner" => push_process(&mut self.answer.owners, words, ""),
            "cell" => {
                self.answer.confinement = words.get(1).and_then(|word| Confinement::parse(word));
                self.answer.unit_hash = words.get(2).map(|hash| (*hash).to_owned());
            }
            "home-kib" => self.answer.home_bytes = number(1).and_then(|kib| kib.checked_mul(1024)),
            "legacy-auth" => self.answer.legacy_auth = true,
            "home" => {
                let name = words.get(1).filter(|name| name.len() <= 64);
                self.answer.home_owner = name.map(|name| (*name).to_owned());
                self.answer.home_uid = number(2).and_then(|uid| u32::try_from(uid).ok());
            }
            "config" => {
                self.answer.config = match (words.get(1).copied(), number(2)) {
                    (Some("missing"), _) => Some(ConfigFile::Missing),
                    (Some("unreadable"), _) => Some(ConfigFile::Unreadable),
                    (Some(hash), Some(bytes)) if hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
                        Some(ConfigFile::Content { sha256: hash.to_ascii_lowercase(), bytes })
                    }
                    _ => None,
                }
            }
            "log" => {
                if let (Some(inode), Some(from), Some(bytes)) = (number(1), number(2), number(3)) {
                    self.log = Some([inode, from, bytes]);
                }
            }
            "rotated" => self.rotated = number(1),
            "end" => self.answer.complete = true,
            _ => {}
        }
    }

    fn quoted(&mut self, label: &[u8], text: &[u8]) {
        match label {
            b"unit" if self.unit.len() < 8192 => {
                self.unit.push_str(&String::from_utf8_lossy(&text[..text.len().min(1024)]));
                self.unit.push('\n');
            }
            b"port" if self.answer.listeners.len() < 64 => self.answer.listeners.extend(listener(text)),
            b"healthz" => extend(&mut self.healthz, text, 16 * 1024),
            b"readyz" => extend(&mut self.readyz, text, 16 * 1024),
            // Once the limit is reached, accept nothing more: a later line would get the wrong position.
            b"log" if !self.log_full => {
                self.log_full = self.log_text.len() + text.len() >= MOST;
                extend(&mut self.log_text, text, MOST);
            }
            b"rotated" => extend(&mut self.rotated_text, text, MOST),
            b"journal" if self.journal_bytes < MOST => {
                self.journal_bytes += text.len();
                self.answer.journal.extend(Line::from_journal(text));
            }
            b"console" if self.journal_bytes < MOST => {
                self.journal_bytes += text.len();
                self.answer.journal.push(Line::from_console(text));
            }
            b"comm" | b"cgroup" | b"config-path" => {
                let text = String::from_utf8_lossy(&text[..text.len().min(2048)]);
                describe_process(self.answer.owners.last_mut(), label, &text);
            }
            _ => {}
        }
    }

    fn finish(mut self, mark: Mark) -> Answer {
        self.answer.unit = State::parse(&self.unit);
        self.answer.healthz = http(&self.healthz);
        self.answer.readyz = http(&self.readyz);
        self.answer.log = self.log.map(|log| {
            let mut tail = tail(log, &self.log_text, mark);
            // The rest of the old file is complete, and the new one is read from its beginning: nothing is missing.
            let whole = |left: u64| self.rotated_text.len() as u64 >= left;
            if log[1] == 0 && self.rotated.is_some_and(whole) {
                let old = self.rotated_text.split(|b| *b == b'\n').filter_map(Line::from_file);
                tail.lines.splice(0..0, old);
                tail.gap = false;
            }
            tail
        });
        self.answer
    }
}

fn extend(to: &mut Vec<u8>, text: &[u8], most: usize) {
    if to.len() + text.len() < most {
        to.extend_from_slice(text);
        to.push(b'\n');
    }
}

/// `LISTEN 0 511 127.0.0.1:18789 0.0.0.0:* users:((…`
fn listener(text: &[u8]) -> Option<Listener> {
    let text = String::from_utf8_lossy(&text[..text.len().min(512)]);
    let mut words = text.split_ascii_whitespace();
    let ("LISTEN", local) = (words.next()?, words.nth(2)?) else { return None };
    let (address, port) = local.rsplit_once(':')?;
    let address = address.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(address);
    // `%eth0` names an interface.
    let address = address.split('%').next().unwrap_or_default();
    let address = if address == "*" { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { address.parse().ok()? };
    Some(Listener { address, port: port.parse().ok()? })
}

fn http(text: &[u8]) -> Option<Http> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.split('\n');
    let first = lines.next()?.trim_end();
    let status = first.strip_prefix("HTTP/")?.split(' ').nth(1)?.parse().ok()?;
    let body: Vec<&str> = lines.skip_while(|line| !line.trim_end().is_empty()).skip(1).collect();
    Some(Http { status, body: body.join("\n").trim_end().to_owned() })
}

/// `text` holds `bytes` bytes of the file, starting at `from`, with a line break after each line. The last line has one
/// here even if it has none in the file yet.
fn tail([inode, from, bytes]: [u64; 3], text: &[u8], mark: Mark) -> LogTail {
    let continues = inode == mark.inode && from == mark.offset;
    let mut lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
    lines.pop();
    let mut taken = text.len() as u64;
    // One byte more means that the last line is still being written. Fewer mean that the answer was cut off, perhaps
    // inside a line.
    if taken != bytes
        && let Some(last) = lines.pop()
    {
        let all_came = taken > bytes;
        taken -= last.len() as u64 + 1;
        // A line that never ends would be read again for ever.
        if all_came && lines.is_empty() && bytes >= LONGEST {
            taken = bytes;
        }
    }
    // The text begins in the middle of a line.
    if from > 0 && !continues && !lines.is_empty() {
        lines.remove(0);
    }
    let lines = lines.iter().filter_map(|line| Line::from_file(line)).collect();
    let next = Mark { inode, offset: from.saturating_add(taken) };
    LogTail { lines, mark: next, gap: mark != Mark::default() && !continues }
}

/// A longer unfinished line is skipped.
const LONGEST: u64 = 32 * 1024;
