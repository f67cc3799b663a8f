//! Containers on servers, as last observed.

use base::id::ServerId;
use jiff::Timestamp;

use crate::db::Record as _;
use crate::{Db, Result, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct Container {
        pub id: String,
        pub server_id: ServerId,
        pub name: String,
        pub image: String,
        pub status: String,
        pub ports: String,
        /// As the container engine prints it.
        pub created_at: String,
    }
}

/// Replaces the recorded containers of a server with those observed now.
pub async fn replace(db: &Db, server: &ServerId, containers: &[Container], at: Timestamp) -> Result<()> {
    let mut tx = db.begin().await?;
    tx.run("DELETE FROM container WHERE server_id = ?", args![server.as_str()]).await?;
    for one in containers {
        let sql = "INSERT INTO container (server_id, id, name, image, status, ports, created_at, seen_at) \
            VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (server_id, id) DO NOTHING";
        let args = args![server.as_str(), &one.id, &one.name, &one.image, &one.status, &one.ports, &one.created_at, at];
        tx.run(sql, args).await?;
    }
    tx.commit().await
}

pub async fn of_server(db: &Db, server: &ServerId) -> Result<Vec<Container>> {
    let sql = format!("SELECT {} FROM container WHERE server_id = ? ORDER BY name, id", Container::COLUMNS);
    db.all(&sql, args![server.as_str()]).await
}
