//! LiteLLM's proxy with one worker and without a database, where `testbed/install.sh litellm` has put it: it keeps neither
//! keys nor a log there, so its figures are the best that it can have.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base::{Error, Result, Secret};

use super::super::start::free_address;

/// It starts in some 15 s.
const START: Duration = Duration::from_secs(120);

pub struct LiteLlm {
    pub address: SocketAddr,
    child: Child,
}

impl LiteLlm {
    /// `None` where it is not installed.
    pub fn start(folder: &Path, upstream: SocketAddr, key: &Secret) -> Result<Option<LiteLlm>> {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
        let Some(binary) = cache.map(|cache| cache.join("tidepool/litellm/venv/bin/litellm")).filter(|it| it.is_file())
        else {
            return Ok(None);
        };
        let address: SocketAddr = free_address()?.parse().map_err(Error::internal)?;
        let folder = folder.join("litellm");
        fs::create_dir_all(&folder).map_err(Error::internal)?;
        let settings = format!(
            "model_list:\n  - model_name: gpt-4o\n    litellm_params: {{model: openai/gpt-4o, api_base: 'http://{upstream}/v1', api_key: of-nobody}}\n\
             general_settings:\n  master_key: {}\n",
            key.expose()
        );
        let file = folder.join("config.yaml");
        fs::write(&file, settings).map_err(Error::internal)?;
        let child = Command::new(binary)
            .arg("--config")
            .arg(&file)
            .args(["--host", "127.0.0.1", "--num_workers", "1", "--port"])
            .arg(address.port().to_string())
            .current_dir(&folder)
            // Its table of prices comes with it: nothing is fetched.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("LITELLM_LOG", "ERROR")
            .env_remove("DATABASE_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::internal)?;
        let mut proxy = LiteLlm { address, child };
        let begin = Instant::now();
        while begin.elapsed() < START {
            if std::net::TcpStream::connect(address).is_ok() {
                return Ok(Some(proxy));
            }
            if let Some(status) = proxy.child.try_wait().map_err(Error::internal)? {
                return Err(Error::internal(format_args!("LiteLLM ended: {status}")));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(Error::internal("LiteLLM did not come up"))
    }

    pub fn pids(&self) -> Vec<u32> {
        vec![self.child.id()]
    }
}

impl Drop for LiteLlm {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
