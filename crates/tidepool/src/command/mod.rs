//! The commands of the binary, one file each.

mod admin;
mod backup;
mod check;
mod completions;
mod copy;
mod rekey;

use std::process::ExitCode;

use base::{Error, Result};
use clap::ArgMatches;
use people::token::Audience;

use crate::config::Config;
use crate::config::setting::SETTINGS;
use crate::{fault, open, serve, telemetry};

pub async fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let unknown = || Error::internal("unknown command");
    let (name, sub) = matches.subcommand().ok_or_else(unknown)?;
    // Settings count both before and after the command's name.
    let config = || Config::load(sub);
    match name {
        "serve" => {
            let config = config()?;
            telemetry::logs(&config)?;
            serve::run(&config).await?;
        }
        "admin" => match sub.subcommand().ok_or_else(unknown)? {
            ("create", args) => admin::create(&Config::load(args)?, args).await?,
            ("reset-password", args) => admin::reset_password(&Config::load(args)?, args).await?,
            ("reset-mfa", args) => admin::reset_mfa(&Config::load(args)?, args).await?,
            _ => return Err(unknown()),
        },
        "db" => match sub.subcommand().ok_or_else(unknown)? {
            ("migrate", args) => migrate(&Config::load(args)?).await?,
            ("backup", args) => backup::make(&Config::load(args)?, args).await?,
            ("restore", args) => backup::restore(&Config::load(args)?, args).await?,
            ("copy", args) => copy::run(&Config::load(args)?, args).await?,
            ("rekey", args) => rekey::run(&Config::load(args)?, args).await?,
            _ => return Err(unknown()),
        },
        "openapi" => {
            let side = match sub.get_one::<String>("side").map(String::as_str) {
                Some("admin") => Audience::Admin,
                _ => Audience::Employee,
            };
            let text = serde_json::to_string_pretty(&api::openapi::document(side)).map_err(Error::internal)?;
            println!("{text}");
        }
        "registry" => {
            let text = serde_json::to_string_pretty(&fleet::registry::document()).map_err(Error::internal)?;
            println!("{text}");
        }
        "check" => return check::run(&config()?).await,
        "completions" => completions::print(sub)?,
        "roles" => print!("{}", queue::permission::document()),
        "settings" => {
            println!("| Environment variable | File and flag | Default | Meaning |\n|---|---|---|---|");
            for s in SETTINGS {
                println!("| {} | {} | {} | {} |", s.env, s.name, s.default, s.about);
            }
        }
        _ => return Err(unknown()),
    }
    Ok(ExitCode::SUCCESS)
}

async fn migrate(config: &Config) -> Result<()> {
    crate::keys::make_private_folder(&config.data_dir)?;
    let (db, _in_use) = open::open_db(config).await?;
    let applied = store::migrate::run(&db).await.map_err(fault::operator)?;
    println!("schema version {}, {} applied now", store::migrate::known(), applied.len());
    Ok(())
}
