//! `tidepool demo`: the product with sample data in a temporary folder, gone when it ends.

use std::net::{SocketAddr, TcpListener};

use base::{Error, Result, Secret};
use domain::App;
use domain::admin_user::{self, Role};
use domain::audit::By;
use domain::{marketplace, user};

use crate::config::Values;
use crate::folder::Folder;
use crate::serve::{Running, told_to_stop};
use crate::{catalogue, open, telemetry};

/// Known to everybody who reads this line, and served on loopback only.
const PASSWORD: &str = "tidepool-demo";

/// name, e-mail, department, tokens a day
const EMPLOYEES: &[(&str, &str, &str, i64)] = &[
    ("Mara Lindqvist", "mara@demo.example", "Research", 200_000),
    ("Jonas Okafor", "jonas@demo.example", "Sales", 100_000),
    ("Wei Chen", "wei@demo.example", "Engineering", 0),
    ("Sofia Marchetti", "sofia@demo.example", "Support", 50_000),
];

pub async fn run(mut values: Values) -> Result<()> {
    let folder = Folder::make("tidepool-demo")?;
    values.set("data_dir", folder.path().display().to_string());
    for name in ["employee_listen", "admin_listen"] {
        if !values.is_set(name) {
            values.set(name, free_address(name)?);
        }
    }
    if !values.is_set("log") {
        values.set("log", "warn");
    }
    values.set("database_url", format!("sqlite:{}", folder.path().join("tidepool.db").display()));
    let config = values.config()?;
    telemetry::logs(&config)?;
    let opened = open::open(&config).await?;
    sample(&opened.app).await?;
    let running = Running::start(&config, opened).await?;
    println!("employees       {}   mara@demo.example / {PASSWORD}", config.employee.public_url.join("/"));
    println!("administrators  {}   admin@demo.example / {PASSWORD}", config.admin.public_url.join("/"));
    println!("API docs        {}", config.admin.public_url.join("/api/v1/docs"));
    println!("Ctrl-C ends the demo and removes its data.");
    told_to_stop().await?;
    running.stop().await;
    Ok(())
}

async fn sample(app: &App) -> Result<()> {
    let by = By::system();
    for (name, email, role) in
        [("Ines Duarte", "admin@demo.example", Role::SuperAdmin), ("Tom Becker", "tom@demo.example", Role::Admin)]
    {
        let password = Some(Secret::new(PASSWORD));
        admin_user::create(app, &by, admin_user::New { email: email.parse()?, name: name.into(), role, password })
            .await?;
    }
    for (name, email, department, quota_daily) in EMPLOYEES {
        let new = user::New {
            email: email.parse()?,
            name: (*name).into(),
            department: (*department).into(),
            quota_daily: *quota_daily,
            password: Some(Secret::new(PASSWORD)),
        };
        user::create(app, &by, new).await?;
    }
    marketplace::load(app, catalogue::items()?).await?;
    Ok(())
}

/// The usual port of a listener, or any free one when somebody has it.
fn free_address(name: &str) -> Result<String> {
    let usual = crate::config::setting::default_address(name).ok_or_else(|| Error::internal("no default address"))?;
    let any = SocketAddr::new(usual.ip(), 0);
    let bound = TcpListener::bind(usual).or_else(|_| TcpListener::bind(any));
    let address = bound.and_then(|listener| listener.local_addr()).map_err(Error::internal)?;
    Ok(address.to_string())
}
