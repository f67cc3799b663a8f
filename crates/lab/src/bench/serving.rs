//! Runs this binary as a separate process that serves the measured installation, so that its CPU time and memory can be
//! measured alone.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base::{Error, Result};

use super::site::Site;

/// Dropping it ends the process.
pub struct Serving(Child);

impl Serving {
    /// Starts the process with `settings` as environment variables, and waits until `url` answers.
    pub async fn start(site: &Site, settings: &[(&str, String)], url: &str) -> Result<Serving> {
        let binary = crate::product()?;
        let child = Command::new(binary)
            .arg("serve")
            .env("TIDEPOOL_DATA_DIR", site.folder.path())
            .env("TIDEPOOL_DATABASE_URL", site.config.database_url.expose())
            .env("TIDEPOOL_LOG", "warn")
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(Error::internal)?;
        let serving = Serving(child);
        let (http, began) = (remote::http::client()?, Instant::now());
        while !http.get(url).send().await.is_ok_and(|a| a.status().is_success()) {
            if began.elapsed() > Duration::from_secs(30) {
                return Err(Error::internal("the process did not come up"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(serving)
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
