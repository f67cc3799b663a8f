//! `tidepool db backup` and `restore`: a folder with the database and, if requested, the keys.

use std::fs;
use std::path::{Path, PathBuf};

use base::{Error, Kind, Result};
use clap::ArgMatches;
use store::backup::Contents;
use store::{Db, backup, key_check};

use crate::config::Config;
use crate::fault::{file_error, operator};
use crate::keys::{self, Keys};
use crate::open::{self, aside, make_private};
use crate::restore::{self, Plan};

const DATABASE: &str = "tidepool.db";

pub async fn make(config: &Config, args: &ArgMatches) -> Result<()> {
    let folder = folder(args);
    let Some(file) = config.sqlite_file() else {
        return Err(refused("this database is PostgreSQL: back it up with pg_dump, and keep the keys beside it"));
    };
    restore::finish_broken_off(&file).await?;
    if !file.is_file() {
        return Err(refused(format!("there is no database {}", file.display())));
    }
    if folder.exists() {
        return Err(refused(format!("{} exists already", folder.display())));
    }
    let (db, _in_use) = open::open_db(config).await?;
    let loaded = Keys::of(config, &db).await?;
    keys::make_private_folder(&folder)?;
    let copy = folder.join(DATABASE);
    backup::make(&db, &copy).await.map_err(operator)?;
    make_private(&copy)?;
    let (copied, contents) = backup::inspect(&copy).await.map_err(operator)?;
    copied.close().await;
    println!("copied to {} and found whole: {}", copy.display(), described(&contents));
    for key in loaded.all() {
        match (&key.file, args.get_flag("with-keys")) {
            (_, true) => {
                keys::write_private(&keys::file_of(&folder, key.setting), key.key.expose())?;
                println!("{}: taken along", key.setting);
            }
            (Some(file), false) => {
                println!("{}: kept in {}; without it the copy is of no use", key.setting, file.display())
            }
            (None, false) => {
                println!("{}: comes from a setting; keep it, without it the copy is of no use", key.setting)
            }
        }
    }
    Ok(())
}

pub async fn restore(config: &Config, args: &ArgMatches) -> Result<()> {
    let folder = folder(args);
    let Some(file) = config.sqlite_file() else {
        return Err(refused("this database is PostgreSQL: restore it with pg_restore"));
    };
    keys::make_private_folder(&config.data_dir)?;
    let _alone = store::lock::alone(&file).map_err(operator)?;
    restore::finish(&file)?;
    // Check a copy, so that the backup itself is only read.
    let incoming = file.with_extension("incoming");
    remove_database(&incoming)?;
    fs::copy(folder.join(DATABASE), &incoming).map_err(|e| file_error(&folder.join(DATABASE), e))?;
    make_private(&incoming)?;
    let checked = check(config, &folder, &incoming).await;
    let contents = match checked {
        Ok(contents) => contents,
        Err(error) => {
            remove_database(&incoming)?;
            return Err(error);
        }
    };
    // Set each file of the database aside: SQLite would replay an old write-ahead log into the new database.
    let before = aside(&file);
    let there: Vec<_> = parts(&file).into_iter().zip(parts(&before)).filter(|(from, _)| from.exists()).collect();
    let (mut plan, mut done) = (Plan::default(), vec![]);
    for (from, to) in &there {
        plan.set_aside(from, to)?;
    }
    if !there.is_empty() {
        done.push(format!("the database that was there is now {}", before.display()));
    }
    plan.put_in_place(&incoming, &file)?;
    for setting in [keys::MASTER, keys::EMPLOYEE_JWT, keys::ADMIN_JWT] {
        let from = keys::file_of(&folder, setting);
        if from.exists() {
            let text = fs::read_to_string(&from).map_err(|e| file_error(&from, e))?;
            let to = keys::file_of(&config.data_dir, setting);
            // The old database needs the old key, so keep it too.
            if fs::read_to_string(&to).is_ok_and(|old| old.trim() != text.trim()) {
                let before = aside(&to);
                plan.set_aside(&to, &before)?;
                done.push(format!("{setting}: the key that was there is now {}", before.display()));
            }
            let staged = to.with_extension("key.incoming");
            keys::write_private(&staged, text.trim())?;
            plan.put_in_place(&staged, &to)?;
        }
    }
    plan.run(&file)?;
    done.iter().for_each(|line| println!("{line}"));
    println!("restored: {}", described(&contents));
    Ok(())
}

/// Checks that the copy is intact, has a version that we support, and opens with the keys that it will have.
async fn check(config: &Config, folder: &Path, incoming: &Path) -> Result<Contents> {
    let (db, contents) = backup::inspect(incoming).await.map_err(operator)?;
    let agreed = check_keys(config, folder, &db).await;
    db.close().await;
    agreed?;
    Ok(contents)
}

async fn check_keys(config: &Config, folder: &Path, db: &Db) -> Result<()> {
    let given = [
        (keys::MASTER, &config.master_key),
        (keys::EMPLOYEE_JWT, &config.employee_jwt_secret),
        (keys::ADMIN_JWT, &config.admin_jwt_secret),
    ];
    for (setting, given) in given {
        let in_backup = keys::file_of(folder, setting);
        let in_place = keys::file_of(&config.data_dir, setting);
        let read = |file: &Path| fs::read_to_string(file).map(|t| base::Secret::new(t.trim())).ok();
        let key = given.clone().or_else(|| read(&in_backup)).or_else(|| read(&in_place));
        let Some(key) = key else {
            return Err(refused(format!(
                "{setting}: neither the backup nor {} has this key",
                config.data_dir.display()
            )));
        };
        if !key_check::is(db, key_check::Key { setting, key: &key }).await.map_err(operator)? {
            return Err(refused(format!("{setting}: the backup was made with another key than the one at hand")));
        }
    }
    Ok(())
}

fn folder(args: &ArgMatches) -> PathBuf {
    PathBuf::from(args.get_one::<String>("folder").map_or("", String::as_str))
}

/// A SQLite database has up to three files.
fn parts(file: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|suffix| PathBuf::from(format!("{}{suffix}", file.display())))
}

fn remove_database(file: &Path) -> Result<()> {
    for part in parts(file) {
        if part.exists() {
            fs::remove_file(&part).map_err(|e| file_error(&part, e))?;
        }
    }
    Ok(())
}

fn described(contents: &Contents) -> String {
    let rows: Vec<String> = contents.rows.iter().map(|(table, n)| format!("{table} {n}")).collect();
    format!("schema version {}; rows: {}", contents.version, rows.join(", "))
}

fn refused(why: impl Into<String>) -> Error {
    Error::new(Kind::BadRequest, why.into())
}
