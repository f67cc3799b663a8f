//! A temporary folder that is deleted when its value is dropped.

use std::path::{Path, PathBuf};

use base::Result;

pub struct Folder(PathBuf);

impl Folder {
    pub fn make(name: &str) -> Result<Folder> {
        let folder = std::env::temp_dir().join(format!("{name}-{}", base::id::fresh()));
        crate::keys::make_private_folder(&folder)?;
        Ok(Folder(folder))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("tidepool: {} could not be removed: {error}", self.0.display());
        }
    }
}
