//! `tidepool db rekey`: changes the master key and, if requested, the token keys.
//!
//! The new master key is on disk before the database changes, and the old one is set aside afterwards. So if the
//! process dies at any moment, one of the two files opens the database. Token keys encrypt nothing, so the command can
//! simply be run again.

use std::fs;
use std::path::Path;

use base::secret::random_token;
use base::{Error, Kind, Result};
use clap::ArgMatches;
use store::seal::Sealer;
use store::{Db, key_check, rekey};

use crate::config::Config;
use crate::fault::{file_error, operator};
use crate::keys::{self, Key, Keys};
use crate::open::aside;
use crate::restore;

pub async fn run(config: &Config, args: &ArgMatches) -> Result<()> {
    let missing = || Error::new(Kind::NotFound, "there is nothing to re-key: no keys, or no database");
    if let Some(file) = config.sqlite_file() {
        restore::finish_broken_off(&file).await?;
    }
    let loaded = Keys::existing(config)?.ok_or_else(missing)?;
    let file = match config.sqlite_file() {
        Some(file) if !file.is_file() => return Err(missing()),
        Some(file) => Some(store::lock::alone(&file).map_err(operator)?),
        None => None,
    };
    let db = Db::open(&config.database_url).await.map_err(operator)?;
    let _alone = match file {
        Some(file) => Some(file),
        None => store::lock::alone_postgres(&db).await.map_err(operator)?,
    };
    store::migrate::run(&db).await.map_err(operator)?;
    master(config, &db, &loaded.master).await?;
    if args.get_flag("jwt") {
        for key in [&loaded.employee_jwt, &loaded.admin_jwt] {
            token_key(&db, key).await?;
        }
    }
    Ok(())
}

async fn master(config: &Config, db: &Db, old: &Key) -> Result<()> {
    let kept = keys::file_of(&config.data_dir, keys::MASTER);
    let next = kept.with_extension("key.next");
    if next.exists() {
        return Err(Error::new(
            Kind::Conflict,
            format!(
                "{} is left of an interrupted rekey: if the server does not start with the old key, \
                 rename it to {}; else remove it",
                next.display(),
                kept.display()
            ),
        ));
    }
    if !key_check::is(db, key_check::Key { setting: keys::MASTER, key: &old.key }).await.map_err(operator)? {
        return Err(operator(store::Error::OtherKey(keys::MASTER)));
    }
    let new = Sealer::generate().map_err(operator)?;
    keys::write_private(&next, new.expose())?;
    match rekey::run(db, keys::MASTER, &old.key, &new).await {
        Ok(moved) => println!("{moved} secrets sealed anew"),
        Err(error) => after_failure(db, old, &next, error).await?,
    }
    match &old.file {
        Some(file) => {
            // Older backups still need the old key.
            let before = aside(file);
            fs::rename(file, &before).map_err(|e| file_error(file, e))?;
            fs::rename(&next, file).map_err(|e| file_error(&next, e))?;
            println!("the new master key is in {}, the one before it in {}", file.display(), before.display());
        }
        None => println!("set TIDEPOOL_MASTER_KEY to the content of {} and remove that file", next.display()),
    }
    Ok(())
}

/// The commit may have succeeded even if its answer was lost. So the new key is deleted only if the database is known
/// to open with the old one.
async fn after_failure(db: &Db, old: &Key, next: &Path, error: store::Error) -> Result<()> {
    match rekey::is_under(db, keys::MASTER, &old.key).await {
        Ok(true) => {
            fs::remove_file(next).map_err(|e| file_error(next, e))?;
            Err(operator(error))
        }
        Ok(false) => {
            println!("every secret is sealed anew, though the database's answer was lost");
            Ok(())
        }
        Err(_) => {
            println!("{} is kept: the database may have taken it, and cannot be asked now", next.display());
            Err(operator(error))
        }
    }
}

/// Replaces a key that is stored in a file by a new one; a key from a setting is taken as it is set now.
async fn token_key(db: &Db, key: &Key) -> Result<()> {
    let new = match &key.file {
        Some(file) => {
            let new = random_token()?;
            keys::write_private(file, new.expose())?;
            new
        }
        None => key.key.clone(),
    };
    let setting = key.setting;
    key_check::replace(db, key_check::Key { setting, key: &new }).await.map_err(operator)?;
    println!("{setting}: changed; everybody on that side logs in again");
    Ok(())
}
