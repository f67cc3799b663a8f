//! The basis of every measurement: its own installation, with employees and instances.

use base::id::NewInstanceId;
use base::{Error, Result};
use fleet::{App, instance, server};
use people::session::{Employee, Token};
use people::user;
use queue::audit::By;
use store::instance::Isolation;
use tidepool::config::{Config, Values};
use tidepool::folder::Folder;
use tidepool::open::{self, Opened};

/// An installation in a temporary folder, or on the configured PostgreSQL database, which must be empty.
pub struct Site {
    pub opened: Opened,
    pub config: Config,
    /// Dropping the folder deletes the installation, so it is kept here.
    pub folder: Folder,
}

impl Site {
    pub async fn open(values: &Values) -> Result<Site> {
        let folder = Folder::make("tidepool-bench")?;
        let mut values = values.clone();
        values.set("data_dir", folder.path().display().to_string());
        let config = values.config()?;
        let opened = open::serving(&config).await?;
        if store::table::count(&opened.app.db, "instance").await? > 0 {
            return Err(Error::conflict("the database is not empty: give the bench one of its own"));
        }
        Ok(Site { opened, config, folder })
    }

    pub fn app(&self) -> &App {
        &self.opened.app
    }

    pub fn kind(&self) -> &'static str {
        if self.config.sqlite_file().is_some() { "SQLite" } else { "PostgreSQL" }
    }

    /// Creates this many instances that can be claimed, on servers with a hundred each. Nothing is on the servers.
    pub async fn instances(&self, count: usize) -> Result<()> {
        let by = By::system();
        for s in 0..count.div_ceil(100) {
            let new = server::New {
                id: Some(format!("bench-{s}")),
                name: format!("Bench {s}"),
                host: "192.0.2.1".into(),
                ssh_port: 22,
                ssh_user: "root".into(),
                ssh_key_path: String::new(),
                ssh_key: None,
                expected_host_key: None,
                base_dir: None,
                notes: String::new(),
            };
            let made = server::create(self.app(), &by, new).await?;
            for i in 0..100.min(count - s * 100) {
                let new = instance::New {
                    id: NewInstanceId::parse(&format!("bench-{s}-{i}"))?,
                    name: format!("Assistant {s}.{i}"),
                    server_id: made.id.clone(),
                    gateway_port: None,
                    gateway_url: None,
                    gateway_token: None,
                    model: "claude-sonnet-4-6".into(),
                    config_json: "{}".into(),
                    notes: String::new(),
                    is_main: false,
                    home: String::new(),
                    unit: String::new(),
                    container_id: String::new(),
                    provision: false,
                };
                let (id, home) = (new.id.id(), format!("/srv/assistants/{i}"));
                instance::create(self.app(), &by, new).await?;
                let mut tx = self.app().db.begin().await?;
                store::instance::set_home(&mut tx, &id, &home).await?;
                store::instance::set_isolation(&mut tx, &id, Isolation::Own, &format!("assistant-{i}")).await?;
                tx.commit().await?;
            }
        }
        Ok(())
    }

    /// Creates this many employees without passwords.
    pub async fn employees(&self, count: usize) -> Result<Vec<Employee>> {
        let mut all = Vec::with_capacity(count);
        for i in 0..count {
            let new = user::New {
                email: format!("bench{i}@example.com").parse()?,
                name: format!("Bench {i}"),
                department: "Bench".into(),
                quota_daily: 0,
                password: None,
            };
            let made = user::create(self.app(), &By::system(), new).await?;
            all.push(Employee {
                id: made.id,
                email: made.email,
                name: made.name,
                token: Token { jti: String::new(), issued_at: 0, expires_at: jiff::Timestamp::MAX },
            });
        }
        Ok(all)
    }
}
