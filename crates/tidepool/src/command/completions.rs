//! `tidepool completions`: prints a script with which a shell completes commands, flags and fixed values.

use std::io::Write as _;

use base::{Error, Result};
use clap::ArgMatches;
use clap_complete::{Shell, generate};

use crate::cli;

pub fn print(args: &ArgMatches) -> Result<()> {
    let text = script(args.get_one::<String>("shell").map_or("", String::as_str))?;
    std::io::stdout().write_all(&text).map_err(Error::internal)
}

fn script(shell: &str) -> Result<Vec<u8>> {
    let shell: Shell = shell.parse().map_err(Error::internal)?;
    let mut text = vec![];
    generate(shell, &mut cli::command(), "tidepool", &mut text);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_the_commands_and_the_settings() {
        for shell in ["bash", "zsh", "fish"] {
            let text = String::from_utf8(script(shell).unwrap()).unwrap();
            for word in ["serve", "reset-password", "employee-oidc-issuer"] {
                assert!(text.contains(word), "{shell} {word}");
            }
        }
        assert!(script("csh").is_err());
    }
}
