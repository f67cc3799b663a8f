//! The three keys: from the settings, or generated once into the data folder.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base::secret::random_token;
use base::{Error, Result, Secret};
use store::seal::Sealer;
use store::{Db, key_check, migrate};

use crate::config::Config;
use crate::fault::{file_error, operator};

pub const MASTER: &str = "master_key";
pub const EMPLOYEE_JWT: &str = "employee_jwt_secret";
pub const ADMIN_JWT: &str = "admin_jwt_secret";

pub struct Keys {
    pub master: Key,
    pub employee_jwt: Key,
    pub admin_jwt: Key,
}

pub struct Key {
    pub setting: &'static str,
    pub key: Secret,
    /// The file that contains it; `None` if it comes from a setting.
    pub file: Option<PathBuf>,
}

impl Keys {
    /// The existing keys; `None` if one of them was never created.
    pub fn existing(config: &Config) -> Result<Option<Keys>> {
        if absent(config).is_empty() { Keys::load(config).map(Some) } else { Ok(None) }
    }

    /// The keys of this database. A missing key is created, but it is an error if the database was created with it.
    pub async fn of(config: &Config, db: &Db) -> Result<Keys> {
        if migrate::version(db).await.map_err(operator)?.is_some() {
            let lost = key_check::expected(db, &absent(config)).await.map_err(operator)?;
            if let Some(setting) = lost.first() {
                let file = file_of(&config.data_dir, setting);
                let variable = format!("TIDEPOOL_{}", setting.to_uppercase());
                return Err(Error::internal(format_args!(
                    "the key {setting} that this database was made with is not here: put {} back, or set {variable}",
                    file.display()
                )));
            }
        }
        Keys::load(config)
    }

    /// Reads the keys from the settings or their files; creates the missing ones.
    fn load(config: &Config) -> Result<Keys> {
        make_private_folder(&config.data_dir)?;
        let load = |setting, given: &Option<Secret>, make: fn() -> Result<Secret>| -> Result<Key> {
            match given {
                Some(key) => Ok(Key { setting, key: key.clone(), file: None }),
                None => {
                    let file = file_of(&config.data_dir, setting);
                    let key = read_or_make(&file, make)?;
                    Ok(Key { setting, key, file: Some(file) })
                }
            }
        };
        Ok(Keys {
            master: load(MASTER, &config.master_key, || Sealer::generate().map_err(operator))?,
            employee_jwt: load(EMPLOYEE_JWT, &config.employee_jwt_secret, random_token)?,
            admin_jwt: load(ADMIN_JWT, &config.admin_jwt_secret, random_token)?,
        })
    }

    /// Explains a key that does not match, and points to the file that an interrupted rekey leaves.
    pub fn explained(&self, error: store::Error) -> Error {
        let next = self.master.file.as_ref().map(|file| file.with_extension("key.next")).filter(|next| next.exists());
        match (&error, next, &self.master.file) {
            (store::Error::OtherKey(MASTER), Some(next), Some(file)) => Error::internal(format_args!(
                "{error}. A rekey was interrupted: its new key is in {}; rename that to {}",
                next.display(),
                file.display()
            )),
            _ => operator(error),
        }
    }

    pub fn all(&self) -> [&Key; 3] {
        [&self.master, &self.employee_jwt, &self.admin_jwt]
    }

    pub fn checked(&self) -> Vec<key_check::Key<'_>> {
        self.all().map(|k| key_check::Key { setting: k.setting, key: &k.key }).into()
    }
}

/// The keys that are neither in a setting nor in a file.
fn absent(config: &Config) -> Vec<&'static str> {
    let given = [
        (MASTER, &config.master_key),
        (EMPLOYEE_JWT, &config.employee_jwt_secret),
        (ADMIN_JWT, &config.admin_jwt_secret),
    ];
    let is_absent =
        |setting: &str, given: &Option<Secret>| given.is_none() && !file_of(&config.data_dir, setting).is_file();
    given.into_iter().filter(|(setting, given)| is_absent(setting, given)).map(|(setting, _)| setting).collect()
}

/// The file of a key that is not in a setting.
pub fn file_of(data_dir: &Path, setting: &str) -> PathBuf {
    data_dir.join(format!("{setting}.key"))
}

/// Creates a folder that only its owner can use.
pub fn make_private_folder(folder: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|e| file_error(folder, e))?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(|e| file_error(folder, e))
}

/// Writes a file atomically that only its owner can read.
pub fn write_private(file: &Path, text: &str) -> Result<()> {
    let temporary = file.with_extension(format!("{}.new", std::process::id()));
    let write = || {
        let mut out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        fs::rename(&temporary, file)
    };
    write().map_err(|e| file_error(file, e))
}

fn read_or_make(file: &Path, make: fn() -> Result<Secret>) -> Result<Secret> {
    match fs::read_to_string(file) {
        Ok(text) => return Ok(Secret::new(text.trim())),
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(file_error(file, e)),
    }
    let key = make()?;
    // The key is written to another file and linked into place. So if two processes start together, only one creates
    // the key, and neither reads an incomplete one.
    let aside = file.with_extension(format!("{}.making", std::process::id()));
    write_private(&aside, key.expose())?;
    let linked = fs::hard_link(&aside, file);
    fs::remove_file(&aside).map_err(|e| file_error(&aside, e))?;
    match linked {
        Ok(()) => Ok(key),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            fs::read_to_string(file).map(|text| Secret::new(text.trim())).map_err(|e| file_error(file, e))
        }
        Err(e) => Err(file_error(file, e)),
    }
}
