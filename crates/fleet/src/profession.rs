//! Professions: the kinds of assistants that employees can claim.

use base::id::{ItemId, ProfessionId, UserId};
use base::{Error, Kind, Listing, Page, Result, Sort};
use queue::audit::{self, Action, AuditEvent, By, Changes};
pub use store::profession::Stocked;
use store::profession::{self, Profession};

use crate::{App, marketplace};

pub struct New {
    pub name: String,
    pub code: String,
    pub icon: String,
    pub tagline: String,
    pub description: String,
    pub role_pack_id: Option<ItemId>,
    pub sort_order: i64,
    pub is_official: bool,
    pub is_active: bool,
}

/// What a PATCH changes; `None` leaves a field as it is. The code never changes.
#[derive(Default)]
pub struct Patch {
    pub name: Option<String>,
    pub icon: Option<String>,
    pub tagline: Option<String>,
    pub description: Option<String>,
    /// `Some(None)` removes the role pack.
    pub role_pack_id: Option<Option<ItemId>>,
    pub sort_order: Option<i64>,
    pub is_official: Option<bool>,
    pub is_active: Option<bool>,
}

pub async fn list(
    app: &App,
    q: Option<&str>,
    is_active: Option<bool>,
    asking: Option<&UserId>,
    sort: Option<Sort>,
    page: Page,
) -> Result<Listing<Stocked>> {
    Ok(profession::list(&app.db, q, is_active, asking, sort, page).await?)
}

pub async fn show(app: &App, id: &ProfessionId) -> Result<Stocked> {
    Ok(profession::show(&app.db, id).await?.ok_or(Kind::NotFound)?)
}

pub async fn create(app: &App, by: &By, new: New) -> Result<Stocked> {
    let id = ProfessionId::fresh();
    let record = Profession {
        id: id.clone(),
        name: new.name,
        code: new.code,
        icon: new.icon,
        tagline: new.tagline,
        description: new.description,
        role_pack_id: new.role_pack_id,
        sort_order: new.sort_order,
        is_official: new.is_official,
        is_active: new.is_active,
        created_at: app.clock.now(),
    };
    let mut tx = app.db.begin().await?;
    if let Some(role_pack) = &record.role_pack_id {
        marketplace::require_role_pack(&mut tx, role_pack).await?;
    }
    profession::insert(&mut tx, &record).await.map_err(|e| match e {
        store::Error::Taken => Error::conflict("a profession with this code exists already"),
        other => other.into(),
    })?;
    let detail = format!("profession {} created", record.name);
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, &record.code, &detail)).await?;
    tx.commit().await?;
    show(app, &id).await
}

pub async fn update(app: &App, by: &By, id: &ProfessionId, patch: Patch) -> Result<Stocked> {
    let mut tx = app.db.begin().await?;
    let old = profession::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let mut new = old.clone();
    new.name = patch.name.unwrap_or(new.name);
    new.icon = patch.icon.unwrap_or(new.icon);
    new.tagline = patch.tagline.unwrap_or(new.tagline);
    new.description = patch.description.unwrap_or(new.description);
    new.role_pack_id = patch.role_pack_id.unwrap_or(new.role_pack_id);
    new.sort_order = patch.sort_order.unwrap_or(new.sort_order);
    new.is_official = patch.is_official.unwrap_or(new.is_official);
    new.is_active = patch.is_active.unwrap_or(new.is_active);
    if let Some(role_pack) = new.role_pack_id.as_ref().filter(|_| new.role_pack_id != old.role_pack_id) {
        marketplace::require_role_pack(&mut tx, role_pack).await?;
    }
    let changes = Changes::default()
        .field("name", &old.name, &new.name)
        .field("icon", &old.icon, &new.icon)
        .field("tagline", &old.tagline, &new.tagline)
        .field("description", &old.description, &new.description)
        .field(
            "role_pack_id",
            old.role_pack_id.as_deref().unwrap_or("none"),
            new.role_pack_id.as_deref().unwrap_or("none"),
        )
        .field("sort_order", &old.sort_order.to_string(), &new.sort_order.to_string())
        .field("is_official", &old.is_official.to_string(), &new.is_official.to_string())
        .field("is_active", &old.is_active.to_string(), &new.is_active.to_string());
    profession::update(&mut tx, &new).await?;
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, &new.code, &changes.text())).await?;
    tx.commit().await?;
    show(app, id).await
}
