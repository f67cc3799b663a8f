//! The platform's scripts. Each is recognised by its name, and executed on the machine's model instead of by a shell.

mod file;
mod home;
mod server;
mod unit;

use std::sync::Arc;

use super::command::Answer;
use super::machine::Machine;
use super::state::State;
use super::words::Invocation;

/// A call of a script: the machine's name, the user, the arguments and the input.
struct Call<'a> {
    machine: &'a str,
    user: &'a str,
    args: &'a [&'a str],
    stdin: &'a [u8],
}

impl<'a> Call<'a> {
    fn arg(&self, number: usize) -> &'a str {
        self.args.get(number - 1).copied().unwrap_or_default()
    }
}

type ScriptFn = fn(&mut State, &Call<'_>) -> Answer;

/// The name of each script, and the function that simulates it.
const SCRIPTS: &[(&str, ScriptFn)] = &[
    ("read-file", file::read),
    ("read-kept-version", file::read_kept),
    ("read-file-end", file::read_end),
    ("read-file-size", file::size),
    ("list-kept-versions", file::kept_versions),
    ("write-file", file::write),
    ("make-folders", file::make_folders),
    ("remove-file", file::remove_below),
    ("remove-unit-file", file::remove),
    ("await-in-log", file::find_in_log),
    ("find-home-owner", home::owner),
    ("make-user", home::make_user),
    ("prepare-user", home::leave_user),
    ("close-user", home::leave_user),
    ("vacate-user", home::leave_user),
    ("remove-user", home::remove_user),
    ("limit-disk", home::limit_disk),
    ("archive-home", home::archive),
    ("make-snapshot", home::make_snapshot),
    ("find-snapshot", home::find_snapshot),
    ("restore-snapshot", home::restore_snapshot),
    ("discard-snapshot", home::discard_snapshot),
    ("bring-state", home::bring_state),
    ("show-units", unit::show_all),
    ("start-unit", unit::start),
    ("stop-unit", unit::stop),
    ("restart-unit", unit::restart),
    ("reset-failed-unit", unit::reset_failed),
    ("enable-unit", unit::enable),
    ("disable-unit", unit::disable),
    ("read-journal", unit::read_journal),
    ("list-port-owners", unit::port_owners),
    ("end-processes", unit::end_processes),
    ("list-sockets", unit::sockets),
    ("find-unit-user", unit::unit_user),
    ("read-metrics", server::metrics),
    ("try-cell", server::cells),
    ("find-installed-version", server::installed),
    ("install-openclaw", server::install),
    ("validate-config", server::validate),
    ("read-pairing-requests", server::pairing_requests),
];

/// This script waits for a connection, so it does not run while the machine's state is locked.
const REACH_URL: &str = "reach-url";

pub(super) async fn run(
    machine: &Arc<Machine>,
    invocation: &Invocation,
    name: &str,
    args: &[&str],
    stdin: &[u8],
) -> Option<Answer> {
    let call = Call { machine: &machine.name, user: &invocation.user, args, stdin };
    if name == REACH_URL {
        return Some(server::reach(&call).await);
    }
    let (_, script) = SCRIPTS.iter().find(|(known, _)| *known == name)?;
    Some(script(&mut machine.lock(), &call))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::host::command::FOLLOW_JOURNAL;
    use crate::host::discover::DISCOVER;
    use crate::host::sweep::SWEEP;

    /// The crates that are no part of the product.
    const TOOLS: &[&str] = &["lab", "sim", "testkit"];
    /// The scripts that are not simulated, each with the reason.
    const NOT_SIMULATED: &[(&str, &str)] = &[
        ("read-container-log", "a simulated machine has no containers"),
        ("read-container-lines", "a simulated machine has no containers"),
        ("follow-container-log", "a simulated machine has no containers"),
        ("read-user-journal", "a simulated machine has no units of users"),
        ("follow-user-journal", "a simulated machine has no units of users"),
    ];

    fn sources(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    /// The names of all scripts in the product's sources, sorted. A name that appears twice is there twice.
    fn product_scripts() -> Vec<String> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut texts = vec![];
        for entry in std::fs::read_dir(crates).unwrap().map(Result::unwrap) {
            if entry.path().join("src").is_dir() && !TOOLS.contains(&entry.file_name().to_str().unwrap()) {
                sources(&entry.path().join("src"), &mut texts);
            }
        }
        let mut names = vec![];
        for text in texts.iter().map(|text| text.split("#[cfg(test)]\nmod tests").next().unwrap()) {
            for call in ["Command::script(", "Command::long_script("].iter().flat_map(|call| text.split(call).skip(1)) {
                let name = call.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
                names.push(name.unwrap_or_else(|| panic!("a name that is no literal: {call:.60}")).to_owned());
            }
        }
        names.sort();
        names
    }

    #[test]
    fn each_script_of_the_product_has_a_name_of_its_own() {
        let names = product_scripts();
        assert!(names.len() > 40, "{names:?}");
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
        for name in &names {
            let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
            assert!(name.split('-').all(is_word), "{name}");
        }
    }

    #[test]
    fn each_script_of_the_product_is_simulated_unless_it_says_why_not() {
        let simulated = SCRIPTS.iter().map(|(name, _)| *name).chain([REACH_URL, FOLLOW_JOURNAL, SWEEP, DISCOVER]);
        let known: Vec<&str> = simulated.chain(NOT_SIMULATED.iter().map(|(name, _)| *name)).collect();
        let product = product_scripts();
        let missing: Vec<&String> = product.iter().filter(|name| !known.contains(&name.as_str())).collect();
        assert!(missing.is_empty(), "not simulated: {missing:?}");
        let stale: Vec<&&str> = known.iter().filter(|name| !product.iter().any(|other| other == *name)).collect();
        assert!(stale.is_empty(), "no script of the product: {stale:?}");
        assert_eq!(known.len(), product.len(), "a name is known twice");
    }
}
