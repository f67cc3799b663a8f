//! The command line: the commands, and one flag for every setting.

use clap::{Arg, ArgAction, Command};

use crate::config::setting::SETTINGS;

pub fn command() -> Command {
    let root = with_settings(
        Command::new("tidepool")
            .version(env!("CARGO_PKG_VERSION"))
            .about("A self-hosted assistant workspace: assistants for a company's staff, on the company's servers."),
    );
    root.subcommand(Command::new("serve").about("Serve the APIs and web apps, run tasks and the clock (see --roles)"))
        .subcommand(admin())
        .subcommand(db())
        .subcommand(
            Command::new("openapi")
                .about("Print the OpenAPI document of one API")
                .arg(Arg::new("side").required(true).value_parser(["employee", "admin"])),
        )
        .subcommand(
            Command::new("registry")
                .about("Print the names of all task types, jobs, guardian dimensions and rules, as JSON"),
        )
        .subcommand(Command::new("check").about("Read the configuration, try every part it names, print a table"))
        .subcommand(
            Command::new("completions")
                .about("Print what a shell needs to complete commands and settings")
                .arg(Arg::new("shell").required(true).value_parser(["bash", "zsh", "fish"])),
        )
        .subcommand(
            Command::new("settings").about("Print every setting with its environment variable, default and meaning"),
        )
        .subcommand(Command::new("roles").about("Print the roles of administrators and what each may do"))
}

/// A program that reads the configuration: a flag for the file, and one for every setting.
pub fn with_settings(program: Command) -> Command {
    let mut root = program.subcommand_required(true).arg_required_else_help(true).arg(
        Arg::new("config")
            .long("config")
            .value_name("FILE")
            .global(true)
            .help("The configuration file [default: tidepool.toml, when there is one] [env: TIDEPOOL_CONFIG]"),
    );
    for setting in SETTINGS {
        root = root.arg(
            Arg::new(setting.name)
                .long(setting.name.replace('_', "-"))
                .value_name("VALUE")
                .global(true)
                .help_heading("Settings")
                .hide_short_help(true)
                .help(setting.help()),
        );
    }
    root
}

fn admin() -> Command {
    let email = Arg::new("email").long("email").required(true).help("The account's e-mail");
    let stdin = Arg::new("password-stdin")
        .long("password-stdin")
        .action(ArgAction::SetTrue)
        .help("Read the password from standard input; otherwise one is generated and printed");
    Command::new("admin")
        .about("Manage administrators from the machine itself")
        .subcommand_required(true)
        .subcommand(
            Command::new("create")
                .about("Make an administrator")
                .arg(email.clone())
                .arg(Arg::new("name").long("name").default_value("Administrator"))
                .arg(Arg::new("role").long("role").default_value("super_admin").value_parser(["super_admin", "admin"]))
                .arg(stdin.clone()),
        )
        .subcommand(
            Command::new("reset-password")
                .about("Give an administrator another password and end all of its sessions")
                .arg(email)
                .arg(stdin),
        )
        .subcommand(
            Command::new("reset-mfa")
                .about("Take the second factor of an account away and end all of its sessions")
                .arg(Arg::new("email").required(true).value_name("EMAIL").help("The account's e-mail"))
                .arg(
                    Arg::new("employee")
                        .long("employee")
                        .action(ArgAction::SetTrue)
                        .help("The account is an employee's, not an administrator's"),
                ),
        )
}

fn db() -> Command {
    Command::new("db")
        .about("Look after the database")
        .subcommand_required(true)
        .subcommand(Command::new("migrate").about("Bring the schema up to date (serve does so by itself)"))
        .subcommand(
            Command::new("backup")
                .about("Copy a SQLite database into a new folder, while it is being served")
                .arg(Arg::new("folder").required(true))
                .arg(
                    Arg::new("with-keys")
                        .long("with-keys")
                        .action(ArgAction::SetTrue)
                        .help("Take the keys along: whoever holds the copy can then open its secrets"),
                ),
        )
        .subcommand(
            Command::new("restore")
                .about("Check a backup and put it in the database's place (stop the server first)")
                .arg(Arg::new("folder").required(true)),
        )
        .subcommand(
            Command::new("copy")
                .about("Move everything from SQLite to an empty PostgreSQL database and prove equal counts")
                .arg(Arg::new("to").long("to").required(true).value_name("postgres://…")),
        )
        .subcommand(
            Command::new("rekey")
                .about("Seal every stored secret anew with a new master key (stop the server first)")
                .arg(
                    Arg::new("jwt")
                        .long("jwt")
                        .action(ArgAction::SetTrue)
                        .help("Change the two token keys too: everybody logs in again"),
                ),
        )
}
