//! nginx as a plain proxy: no log, no limits, persistent connections to the upstream.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base::{Error, Result};

pub struct Nginx {
    pub address: SocketAddr,
    child: Child,
}

impl Nginx {
    /// `None` if nginx is not installed.
    pub fn start(folder: &Path, upstream: SocketAddr) -> Result<Option<Nginx>> {
        let Some(binary) = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).is_file())
        else {
            return Ok(None);
        };
        let address: SocketAddr = super::super::start::free_address()?.parse().map_err(Error::internal)?;
        let folder = folder.join("nginx");
        fs::create_dir_all(&folder).map_err(Error::internal)?;
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {}/{kind};\n", folder.display()))
            .concat();
        let settings = format!(
            "daemon off;\nmaster_process on;\nworker_processes auto;\npid {0}/pid;\nerror_log {0}/error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{\naccess_log off;\nkeepalive_requests 10000000;\n{temporary}\
             upstream up {{ server {upstream}; keepalive 256; keepalive_requests 10000000; }}\n\
             server {{ listen {address}; client_max_body_size 8m;\n\
             location / {{ proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; }} }}\n}}\n",
            folder.display()
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, settings).map_err(Error::internal)?;
        let child = Command::new(binary)
            .arg("-c")
            .arg(&file)
            .arg("-p")
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::internal)?;
        let nginx = Nginx { address, child };
        for _ in 0..500 {
            if std::net::TcpStream::connect(address).is_ok() {
                return Ok(Some(nginx));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(Error::internal("nginx did not come up"))
    }

    /// The master and its workers.
    pub fn pids(&self) -> Vec<u32> {
        let master = self.child.id();
        let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children")).unwrap_or_default();
        let workers = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        std::iter::once(master).chain(workers).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The master ends its workers on SIGTERM, but not on SIGKILL.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        }
        self.child.wait().ok();
    }
}
