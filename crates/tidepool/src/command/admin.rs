//! `tidepool admin`: for an operator who has access to the machine but no login.

use std::io::Read as _;

use base::{Email, Error, Kind, Name, Result, Secret};
use clap::ArgMatches;
use people::admin_user::{self, New, Role};
use people::bootstrap::random_password;
use people::second_factor;
use people::token::Audience;
use queue::audit::By;

use crate::config::Config;
use crate::open;

pub async fn create(config: &Config, args: &ArgMatches) -> Result<()> {
    let opened = open::open(config).await?;
    let email: Email = text(args, "email").parse()?;
    let name = Name::<100>::parse(text(args, "name")).map_err(|e| Error::field("name", e))?;
    let role = Role::parse(text(args, "role")).unwrap_or(Role::Admin);
    let (password, generated) = password(args)?;
    let new = New { email, name: name.as_str().to_owned(), role, password: Some(password.clone()) };
    let made = admin_user::create(&opened.app, &By::system(), new).await?;
    println!("made {} {}", made.role.as_str(), made.email);
    tell(generated, &password);
    Ok(())
}

pub async fn reset_password(config: &Config, args: &ArgMatches) -> Result<()> {
    let opened = open::open(config).await?;
    let (password, generated) = password(args)?;
    let email = text(args, "email");
    let reset = admin_user::reset_password(&opened.app, &By::system(), email, password.clone()).await;
    let admin = reset.map_err(|e| match e.kind {
        Kind::NotFound => Error::new(Kind::NotFound, format!("there is no administrator {email}")),
        _ => e,
    })?;
    println!("{} has another password; its sessions are ended", admin.email);
    tell(generated, &password);
    Ok(())
}

/// For a user who has lost the authenticator app and the recovery codes.
pub async fn reset_mfa(config: &Config, args: &ArgMatches) -> Result<()> {
    let opened = open::open(config).await?;
    let email = text(args, "email");
    let (side, kind) = match args.get_flag("employee") {
        true => (Audience::Employee, "employee"),
        false => (Audience::Admin, "administrator"),
    };
    let reset = second_factor::reset(&opened.app, &By::system(), side, email).await;
    let (email, had) = reset.map_err(|e| match e.kind {
        Kind::NotFound => Error::new(Kind::NotFound, format!("there is no {kind} {email}")),
        _ => e,
    })?;
    match had {
        true => println!("{email} has no second factor any more; its sessions are ended"),
        false => println!("{email} had no second factor; its sessions are ended"),
    }
    Ok(())
}

fn text<'a>(args: &'a ArgMatches, name: &str) -> &'a str {
    args.get_one::<String>(name).map_or("", String::as_str)
}

/// The password, and whether it was generated.
fn password(args: &ArgMatches) -> Result<(Secret, bool)> {
    if !args.get_flag("password-stdin") {
        return Ok((random_password()?, true));
    }
    let mut given = String::new();
    std::io::stdin().read_to_string(&mut given).map_err(Error::internal)?;
    Ok((Secret::new(given.trim_end_matches(['\n', '\r'])), false))
}

fn tell(generated: bool, password: &Secret) {
    if generated {
        println!("password: {} (shown only now)", password.expose());
    }
}
