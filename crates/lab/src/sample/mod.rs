//! A fictional company for the demo: people, servers, assistants, professions and their pools.

mod providers;
mod server_to_add;
mod servers;
mod usage;

use base::id::{InstanceId, ItemId, NewInstanceId, ProfessionId, ServerId};
use base::money::Price;
use base::price::{PerMillion, Rate, TierRate};
use base::{Kind, Result, Secret};
use fleet::{App, instance, marketplace, profession, server};
use llm::model;
use people::admin_user::{self, Role};
use people::session::{Employee, Token};
use people::{claim, pool, user};
use queue::audit::By;

use crate::catalogue;
pub use servers::Fleet;

/// Public, since it is in the source; the demo listens on loopback only.
pub const PASSWORD: &str = "tidepool-demo";

/// name, e-mail, role
const ADMINS: &[(&str, &str, Role)] = &[
    ("Ines Duarte", "admin@demo.example", Role::SuperAdmin),
    ("Tom Becker", "tom@demo.example", Role::Admin),
    ("Priya Nair", "priya@demo.example", Role::Operator),
    ("Hana Novak", "hana@demo.example", Role::Auditor),
];

/// name, e-mail, department, tokens a day
const EMPLOYEES: &[(&str, &str, &str, i64)] = &[
    ("Mara Lindqvist", "mara@demo.example", "Research", 200_000),
    ("Jonas Okafor", "jonas@demo.example", "Sales", 100_000),
    ("Wei Chen", "wei@demo.example", "Research", 0),
    ("Sofia Marchetti", "sofia@demo.example", "Support", 50_000),
    ("Dmitri Volkov", "dmitri@demo.example", "Engineering", 150_000),
    ("Aiko Tanaka", "aiko@demo.example", "Design", 80_000),
    ("Lena Hartmann", "lena@demo.example", "Finance", 60_000),
    ("Samuel Adeyemi", "samuel@demo.example", "Support", 50_000),
];

/// Where Wei Chen is since half a month ago.
const MOVED_TO: &str = "Engineering";

/// Who has left, and what they used an instance for until half a month ago. Nobody signs in with it.
const FORMER: (&str, &str, &str) = ("Rosa Almeida", "rosa@demo.example", "Sales");

const MODELS: &[&str] = &["claude-sonnet-4-6", "gpt-4o", "claude-opus-4-6", "gemini-2.5-flash"];
/// A model of another's that was tried for half a month, and one for the assistants' memory; both from the release's table.
const TRIED: &str = "deepseek-v3.2";
const EMBEDDING: &str = "text-embedding-3-small";

/// name, code, icon, tagline, role pack, the instances of its pool
type Trade = (&'static str, &'static str, &'static str, &'static str, Option<&'static str>, &'static [&'static str]);
const PROFESSIONS: &[Trade] = &[
    (
        "Data analyst",
        "data-analyst",
        "📊",
        "Turns questions into tables and charts",
        Some("role-data-analyst"),
        &["fra-1-b", "fra-2-b", "lis-1-b"],
    ),
    (
        "Project coordinator",
        "project-coordinator",
        "🗂️",
        "Keeps plans, owners and dates together",
        Some("role-project-coordinator"),
        &["fra-1-c", "fra-2-c"],
    ),
    (
        "Support agent",
        "support-agent",
        "🎧",
        "Answers customers, kindly and once",
        Some("role-support-agent"),
        &["lis-1-c"],
    ),
    ("Translator", "translator", "🌐", "Moves texts between languages with their tone", None, &["lis-1-d"]),
];

/// The records of the company that `Company::work` needs.
pub struct Company {
    people: Vec<user::User>,
    professions: Vec<ProfessionId>,
}

/// Creates all records. Tasks then bring the assistants to the servers.
pub async fn company(app: &App, fleet: &Fleet) -> Result<Company> {
    let by = By::system();
    for (name, email, role) in ADMINS {
        let password = Some(Secret::new(PASSWORD));
        let new = admin_user::New { email: email.parse()?, name: (*name).into(), role: *role, password };
        admin_user::create(app, &by, new).await?;
    }
    let mut people = vec![];
    for (name, email, department, quota_daily) in EMPLOYEES {
        let new = user::New {
            email: email.parse()?,
            name: (*name).into(),
            department: (*department).into(),
            quota_daily: *quota_daily,
            password: Some(Secret::new(PASSWORD)),
        };
        people.push(user::create(app, &by, new).await?);
    }
    models(app, &by).await?;
    marketplace::load(app, catalogue::items()?).await?;
    for (id, name) in servers::SERVERS {
        add_server(app, &by, fleet, id, name).await?;
    }
    providers::add(app, &by).await?;
    let mut professions = vec![];
    for (i, (name, code, icon, tagline, role_pack, instances)) in PROFESSIONS.iter().enumerate() {
        let new = profession::New {
            name: (*name).into(),
            code: (*code).into(),
            icon: (*icon).into(),
            tagline: (*tagline).into(),
            description: String::new(),
            role_pack_id: role_pack.map(ItemId::named),
            sort_order: i as i64,
            is_official: true,
            is_active: true,
        };
        let id = ProfessionId::named(profession::create(app, &by, new).await?.profession.id);
        for instance in *instances {
            pool::add(app, &by, &id, &InstanceId::named(*instance), None).await?;
        }
        professions.push(id);
    }
    Ok(Company { people, professions })
}

/// A model of the company's own under two names, which a further provider has too; a price that somebody changed; a model that is
/// switched off, so that nobody asks its provider, and one for embeddings.
async fn models(app: &App, by: &By) -> Result<()> {
    let price = |usd: f64| PerMillion::from_usd(usd);
    let rate = Rate { input: price(0.2), output: price(0.6), cache_read: price(0.05), ..Rate::default() };
    let own = model::Patch {
        aliases: Some(vec!["house".into()]),
        context_window: Some(Some(131_072)),
        max_output: Some(Some(16_384)),
        inputs: Some(vec![model::Input::Text, model::Input::Image]),
        tools: Some(Some(true)),
        upstream_name: Some("house-model-v3".into()),
        offers: Some(vec![("mistral".into(), "ft:acme-house:v3".into())]),
        rates: Some(vec![TierRate { rate, ..TierRate::default() }]),
        ..model::Patch::default()
    };
    let own = model::Patch { kind: Some(model::ProviderKind::Openai), ..own };
    model::create(app, by, "acme-house", None, own).await?;
    let edited = model::Patch { price: Price::from_usd(0.001), ..model::Patch::default() };
    model::update(app, by, "gemini-3-flash", edited).await?;
    let tried = model::Patch {
        kind: Some(model::ProviderKind::Compatible),
        provider: Some("deepseek".into()),
        enabled: Some(false),
        ..model::Patch::default()
    };
    model::create(app, by, TRIED, Some(TRIED), tried).await?;
    model::create(app, by, EMBEDDING, Some(EMBEDDING), model::Patch::default()).await?;
    Ok(())
}

impl Company {
    /// Two employees claim an instance, one is assigned an instance, and they have used it for a month; the others can
    /// try it. The assistants must be on their servers by now: nothing else is given out.
    pub async fn work(&self, app: &App) -> Result<()> {
        let ([_, jonas, wei, sofia, ..], [analyst, ..]) = (self.people.as_slice(), self.professions.as_slice()) else {
            return Ok(());
        };
        if_ready(claim::profession(app, &employee(wei), analyst).await)?;
        if_ready(claim::instance(app, &employee(sofia), None).await)?;
        instance::assign(app, &By::system(), &InstanceId::named("fra-2-a"), Some(&jonas.id)).await?;
        usage::month(app).await?;
        usage::moved(app, &wei.id, MOVED_TO).await?;
        let (name, email, department) = FORMER;
        let new = user::New {
            email: email.parse()?,
            name: name.into(),
            department: department.into(),
            quota_daily: 0,
            password: None,
        };
        let rosa = user::create(app, &By::system(), new).await?;
        usage::former(app, &rosa.id).await?;
        user::delete(app, &By::system(), &rosa.id).await
    }
}

/// On a machine that is too slow, nothing may be ready yet. The demo then shows what there is.
fn if_ready(claimed: Result<claim::Claimed>) -> Result<()> {
    match claimed {
        Err(error) if error.kind == Kind::NoIdleInstance => Ok(()),
        claimed => claimed.map(drop),
    }
}

async fn add_server(app: &App, by: &By, fleet: &Fleet, id: &str, name: &str) -> Result<()> {
    let new = server::New {
        id: Some(id.into()),
        name: name.into(),
        host: "127.0.0.1".into(),
        ssh_port: i64::from(fleet.port(id)?),
        ssh_user: "root".into(),
        ssh_key_path: String::new(),
        ssh_key: Some(fleet.key.clone()),
        expected_host_key: fleet.expected(id)?,
        base_dir: None,
        notes: "simulated within the demo".into(),
    };
    server::create(app, by, new).await?;
    for (letter, model) in ["a", "b", "c", "d"].into_iter().zip(MODELS) {
        let new = instance::New {
            id: NewInstanceId::parse(&format!("{id}-{letter}"))?,
            name: format!("{name} {}", letter.to_uppercase()),
            server_id: ServerId::named(id),
            gateway_port: None,
            gateway_url: None,
            gateway_token: None,
            model: (*model).into(),
            config_json: "{}".into(),
            notes: String::new(),
            is_main: false,
            home: String::new(),
            unit: String::new(),
            container_id: String::new(),
            provision: true,
        };
        instance::create(app, by, new).await?;
    }
    Ok(())
}

/// An employee who acts without a login.
fn employee(user: &user::User) -> Employee {
    Employee {
        id: user.id.clone(),
        email: user.email.clone(),
        name: user.name.clone(),
        token: Token { jti: String::new(), issued_at: 0, expires_at: jiff::Timestamp::MAX },
    }
}
