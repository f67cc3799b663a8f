//! `tidepool db copy`: from SQLite to PostgreSQL.

use base::{Error, Kind, Result, Secret};
use clap::ArgMatches;
use store::{Db, copy};

use crate::config::Config;
use crate::fault::operator;
use crate::restore;

pub async fn run(config: &Config, args: &ArgMatches) -> Result<()> {
    let to = Secret::new(args.get_one::<String>("to").map_or("", String::as_str));
    if !to.expose().starts_with("postgres://") && !to.expose().starts_with("postgresql://") {
        return Err(Error::new(Kind::BadRequest, "--to must begin with postgres://"));
    }
    if let Some(file) = config.sqlite_file() {
        restore::finish_broken_off(&file).await?;
    }
    // No other process may write to it during the copy.
    let _alone = match config.sqlite_file() {
        Some(file) if !file.is_file() => {
            return Err(Error::new(Kind::NotFound, format!("there is no database {}", file.display())));
        }
        Some(file) => Some(store::lock::alone(&file).map_err(operator)?),
        None => None,
    };
    let from = Db::open(&config.database_url).await.map_err(operator)?;
    let target = Db::open(&to).await.map_err(operator)?;
    let copied = copy::run(&from, &target).await.map_err(operator)?;
    for (table, rows) in &copied {
        println!("{table}: {rows} rows in both");
    }
    println!("now set TIDEPOOL_DATABASE_URL to the new database and keep the same keys");
    Ok(())
}
