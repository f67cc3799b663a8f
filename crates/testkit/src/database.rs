//! A database of its own for each test.

use base::Secret;
use store::Db;
use tempfile::TempDir;

use crate::{keep_database, skip};

/// Where a test's data lives. A failed test keeps it.
pub struct Database {
    pub url: Secret,
    /// Removed with the test.
    _folder: Option<TempDir>,
}

impl Drop for Database {
    fn drop(&mut self) {
        keep_database(self.url.expose());
    }
}

impl Database {
    pub fn sqlite() -> Database {
        let folder = tempfile::tempdir().unwrap();
        let url = Secret::new(format!("sqlite:{}", folder.path().join("test.db").display()));
        Database { url, _folder: Some(folder) }
    }

    /// Opens it with all tables: for the tests of single rules.
    pub async fn migrated(&self) -> Db {
        let db = Db::open(&self.url).await.unwrap();
        store::migrate::run(&db).await.unwrap();
        db
    }

    /// The same database by way of a proxy.
    pub fn behind(mut self, proxy: &crate::Proxy) -> Database {
        self.url = Secret::new(proxy.instead_of(self.url.expose()));
        self
    }

    /// A new database on the suite's PostgreSQL; `None` (a counted skip) where there is none.
    pub async fn postgres(name: &str) -> Option<Database> {
        let Ok(server) = std::env::var("TIDEPOOL_TEST_PG_URL") else {
            skip(name, "no PostgreSQL: TIDEPOOL_TEST_PG_URL is not set");
            return None;
        };
        let database = format!("t_{}", base::id::fresh().replace('-', ""));
        let admin = Db::open(&Secret::new(&server)).await.unwrap();
        admin.run(&format!("CREATE DATABASE {database}"), vec![]).await.unwrap();
        admin.close().await;
        let (base, _) = server.rsplit_once('/').unwrap();
        Some(Database { url: Secret::new(format!("{base}/{database}")), _folder: None })
    }
}
