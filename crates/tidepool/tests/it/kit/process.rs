//! The real binary as a process, with a clean environment, ended by its pid.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use super::call::Origin;

pub const BIN: &str = env!("CARGO_BIN_EXE_tidepool");

/// A command of the binary in `folder`, with nothing of our environment but what is given.
fn command(binary: &str, folder: &Path, args: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(binary);
    command.args(args).current_dir(folder).env_clear().envs(environment.iter().copied());
    command
}

/// Runs a command to its end.
pub fn run(folder: &Path, args: &[&str], environment: &[(&str, &str)]) -> Output {
    command(BIN, folder, args, environment).stdin(Stdio::null()).output().unwrap()
}

/// A server that was started, and is killed when the test forgets it.
pub struct Process {
    child: Child,
    /// What it writes: a pipe that nobody reads would hold it up.
    out: File,
    err: File,
    pub employee: Origin,
    pub admin: Origin,
    /// The address of the LLM gateway.
    pub gateway: String,
}

impl Process {
    /// Starts `serve` in `folder` (its data in `folder/data`) on free ports; does not wait.
    pub fn serve(folder: &Path, environment: &[(&str, &str)]) -> Process {
        Process::start(BIN, folder, environment, tempfile::tempfile().unwrap())
    }

    /// The same with the binary of another release.
    pub fn serve_with(binary: &str, folder: &Path, environment: &[(&str, &str)]) -> Process {
        Process::start(binary, folder, environment, tempfile::tempfile().unwrap())
    }

    /// The same, with its log at the end of `folder/log`.
    pub fn serve_logging(folder: &Path, environment: &[(&str, &str)]) -> Process {
        let log = OpenOptions::new().create(true).read(true).append(true).open(folder.join("log")).unwrap();
        Process::start(BIN, folder, environment, log)
    }

    fn start(binary: &str, folder: &Path, environment: &[(&str, &str)], err: File) -> Process {
        let [employee, admin, gateway, embed] = [(); 4].map(|()| format!("127.0.0.1:{}", super::free_port()));
        let mut own = vec![
            ("TIDEPOOL_EMPLOYEE_LISTEN", employee.as_str()),
            ("TIDEPOOL_ADMIN_LISTEN", admin.as_str()),
            ("TIDEPOOL_GATEWAY_LISTEN", gateway.as_str()),
            ("TIDEPOOL_EMBED_LISTEN", embed.as_str()),
        ];
        // Older releases do not know this setting, and refuse what they do not know.
        if binary == BIN {
            own.push(("TIDEPOOL_LOCAL_SERVER", "true"));
        }
        let out = tempfile::tempfile().unwrap();
        let child = command(binary, folder, &["serve"], &[&own[..], environment].concat())
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(err.try_clone().unwrap())
            .spawn()
            .unwrap();
        Process {
            child,
            out,
            err,
            employee: Origin::new(format!("http://{employee}")),
            admin: Origin::new(format!("http://{admin}")),
            gateway,
        }
    }

    /// Waits until the admin side answers.
    pub async fn ready(&mut self) {
        let url = format!("{}/readyz", self.admin.url);
        testkit::until_ok("the server is ready", async || {
            let answer = self.admin.http.get(&url).send().await;
            if let Ok(answer) = &answer
                && answer.status().is_success()
            {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the server ended with {status}: {}", whole(&self.err));
            }
            Err((answer.map(|answer| answer.status()), whole(&self.err)))
        })
        .await;
    }

    /// Waits until it ended by itself; answers what it said.
    pub async fn ended(&mut self) -> String {
        testkit::until_ok("the server ends", async || match self.child.try_wait().unwrap() {
            Some(_) => Ok(()),
            None => Err(whole(&self.err)),
        })
        .await;
        whole(&self.err)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// SIGSTOP: from one instruction to the next it stands still, and nobody is told.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// SIGCONT: it goes on where it was, as if no time had passed.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// SIGKILL: it finishes nothing.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end; answers how it ended and what it wrote.
    pub fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        (status, whole(&self.out) + &whole(&self.err))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// All that is in the file. The process that writes it shares our position in it, so that stays where it is.
fn whole(file: &File) -> String {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
