//! The marketplace: items that administrators offer and employees install on their instances. Files are validated and
//! scanned when they are uploaded, so that an employee sees what is suspicious before installing an item.

use std::collections::HashMap;

use base::id::ItemId;
use base::{Error, FilePath, Listing, Page, Result, Sort, hidden};
use openclaw::layout::{CONFIG_DOCUMENT, STATE_FOLDERS};
use queue::audit::{self, Action, AuditEvent, By, Changes};
use scanner::Finding;
use serde_json::Value;
use store::Tx;
use store::marketplace::{self, NewFile};
pub use store::marketplace::{File, Item, ItemFilter, Kind, Profession, Scope};

use crate::App;

/// Bytes of one file.
pub const FILE_MAX: usize = 1024 * 1024;
/// Bytes of all files of an item.
pub const ITEM_MAX: usize = 10 * 1024 * 1024;
pub const FILES_MAX: usize = 200;
/// Bytes of a file that are shown before it is installed.
pub const PREVIEW: usize = 4 * 1024;
/// The version of an item that names none.
pub const FIRST_VERSION: &str = "1.0.0";

/// An uploaded file.
#[derive(Clone, Debug)]
pub struct Upload {
    pub scope: Scope,
    pub path: FilePath,
    pub content: String,
}

#[derive(Clone, Debug)]
pub struct New {
    pub kind: Kind,
    pub name: String,
    pub description: String,
    pub icon: String,
    pub version: String,
    pub is_active: bool,
    pub files: Vec<Upload>,
}

/// What a PATCH changes; `None` leaves a field as it is. The type never changes.
#[derive(Default)]
pub struct Patch {
    pub name: Option<String>,
    pub description: Option<String>,
    pub icon: Option<String>,
    pub version: Option<String>,
    pub is_active: Option<bool>,
    /// Replaces all files.
    pub files: Option<Vec<Upload>>,
}

/// An item with its files and the professions it belongs to.
#[derive(Debug)]
pub struct Whole {
    pub item: Item,
    pub files: Vec<Looked>,
    pub professions: Vec<Profession>,
}

/// A stored file with the scanner's findings.
#[derive(Debug)]
pub struct Looked {
    pub file: File,
    pub findings: Vec<Finding>,
}

pub async fn list(app: &App, filter: ItemFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Item>> {
    Ok(marketplace::list(&app.db, filter, sort, page).await?)
}

/// An item with the full content of its files, for administrators.
pub async fn show(app: &App, id: &ItemId) -> Result<Whole> {
    let item = marketplace::find(&app.db, id).await?.ok_or(base::Kind::NotFound)?;
    let files = marketplace::files(&app.db, id).await?;
    whole(app, item, files).await
}

/// An item that is offered, with the beginning of each file, hidden characters made visible.
pub async fn preview(app: &App, id: &ItemId) -> Result<Whole> {
    let item = marketplace::find(&app.db, id).await?.filter(|i| i.is_active).ok_or(base::Kind::NotFound)?;
    let mut files = marketplace::previews(&app.db, id, PREVIEW as i64).await?;
    for file in &mut files {
        file.content.truncate(file.content.floor_char_boundary(PREVIEW));
        file.content = hidden::visible(&file.content);
    }
    whole(app, item, files).await
}

async fn whole(app: &App, item: Item, files: Vec<File>) -> Result<Whole> {
    let look = |file: File| {
        let findings = serde_json::from_str(&file.findings).map_err(Error::internal)?;
        Ok(Looked { file, findings })
    };
    let files = files.into_iter().map(look).collect::<Result<_>>()?;
    let professions = marketplace::professions_of(&app.db, &item.id).await?;
    Ok(Whole { item, files, professions })
}

pub async fn create(app: &App, by: &By, new: New) -> Result<Whole> {
    let id = ItemId::fresh();
    add(app, by, &id, new).await?;
    show(app, &id).await
}

async fn add(app: &App, by: &By, id: &ItemId, new: New) -> Result<()> {
    let checked = check(new.files).await?;
    let now = app.clock.now();
    let item = Item {
        id: id.clone(),
        kind: new.kind,
        name: new.name,
        description: new.description,
        icon: new.icon,
        version: new.version,
        revision: 1,
        file_count: checked.files.len() as i64,
        size: checked.size,
        finding_count: checked.finding_count,
        install_count: 0,
        is_active: new.is_active,
        created_at: now,
        updated_at: now,
    };
    let mut tx = app.db.begin().await?;
    marketplace::insert(&mut tx, &item).await?;
    marketplace::replace_files(&mut tx, id, &checked.rows()).await?;
    let detail = format!("marketplace item {} {} created: {}", item.name, item.version, checked.describe());
    audit::record(app, &mut tx, by, checked.event(id, &detail)).await?;
    Ok(tx.commit().await?)
}

pub async fn update(app: &App, by: &By, id: &ItemId, patch: Patch) -> Result<Whole> {
    let checked = match patch.files {
        Some(files) => Some(check(files).await?),
        None => None,
    };
    let mut tx = app.db.begin().await?;
    let old = marketplace::lock(&mut tx, id).await?.ok_or(base::Kind::NotFound)?;
    let mut item = old.clone();
    item.name = patch.name.unwrap_or(item.name);
    item.description = patch.description.unwrap_or(item.description);
    item.icon = patch.icon.unwrap_or(item.icon);
    item.version = patch.version.unwrap_or(item.version);
    item.is_active = patch.is_active.unwrap_or(item.is_active);
    item.updated_at = app.clock.now();
    let mut changes = Changes::default()
        .field("name", &old.name, &item.name)
        .field("description", &old.description, &item.description)
        .field("icon", &old.icon, &item.icon)
        .field("version", &old.version, &item.version)
        .field("is_active", &old.is_active.to_string(), &item.is_active.to_string());
    if let Some(checked) = &checked
        && !checked.equals(&marketplace::files(&mut tx, id).await?)
    {
        item.revision += 1;
        item.file_count = checked.files.len() as i64;
        item.size = checked.size;
        item.finding_count = checked.finding_count;
        marketplace::replace_files(&mut tx, id, &checked.rows()).await?;
        changes = changes.field("files", &format!("revision {}", old.revision), &checked.describe());
    }
    marketplace::update(&mut tx, &item).await?;
    let detail = format!("marketplace item {}: {}", old.name, changes.text());
    let event = match &checked {
        Some(checked) => checked.event(id, &detail),
        None => AuditEvent::info(Action::ConfigChange, id.as_str(), &detail),
    };
    audit::record(app, &mut tx, by, event).await?;
    tx.commit().await?;
    show(app, id).await
}

/// Soft delete: what is installed stays on its instances.
pub async fn delete(app: &App, by: &By, id: &ItemId) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let item = marketplace::lock(&mut tx, id).await?.ok_or(base::Kind::NotFound)?;
    let professions = marketplace::professions_of(&mut tx, id).await?;
    if !professions.is_empty() {
        let names: Vec<&str> = professions.iter().map(|p| p.name.as_str()).collect();
        return Err(Error::conflict(format!("it is the role pack of {}", names.join(", "))));
    }
    marketplace::delete(&mut tx, id, app.clock.now()).await?;
    let detail = format!("marketplace item {} {} deleted", item.name, item.version);
    audit::record(app, &mut tx, by, AuditEvent::warn(Action::ConfigChange, id.as_str(), &detail)).await?;
    Ok(tx.commit().await?)
}

/// Checks that the item is a role pack. Locks it, so that it cannot be deleted until the transaction ends.
pub(crate) async fn require_role_pack(tx: &mut Tx, id: &ItemId) -> Result<()> {
    match marketplace::lock(tx, id).await? {
        Some(item) if item.kind == Kind::RolePack => Ok(()),
        Some(_) => Err(Error::field("role_pack_id", "is no item of type role_pack")),
        None => Err(Error::field("role_pack_id", "there is no such marketplace item")),
    }
}

/// An item of a catalogue that comes with the product.
pub struct Catalogued {
    pub id: ItemId,
    pub new: New,
}

/// What loading a catalogue did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    pub added: usize,
    pub updated: usize,
}

/// Loads a catalogue: adds new items and replaces older versions. An item that an administrator deleted stays deleted.
/// Loading the same catalogue again changes nothing.
pub async fn load(app: &App, catalogue: Vec<Catalogued>) -> Result<Loaded> {
    let by = By::system();
    let mut loaded = Loaded::default();
    for Catalogued { id, new } in catalogue {
        match marketplace::find(&app.db, &id).await? {
            Some(item) if is_newer(&new.version, &item.version) => {
                let patch = Patch {
                    name: Some(new.name),
                    description: Some(new.description),
                    icon: Some(new.icon),
                    version: Some(new.version),
                    is_active: None,
                    files: Some(new.files),
                };
                update(app, &by, &id, patch).await?;
                loaded.updated += 1;
            }
            Some(_) => {}
            None if marketplace::find_even_deleted(&app.db, &id).await?.is_some() => {}
            None => {
                add(app, &by, &id, new).await?;
                loaded.added += 1;
            }
        }
    }
    Ok(loaded)
}

/// Compares versions number by number; a part that is not a number counts as 0.
fn is_newer(version: &str, than: &str) -> bool {
    let numbers = |text: &str| -> Vec<u64> { text.split('.').map(|n| n.parse().unwrap_or(0)).collect() };
    let (version, than) = (numbers(version), numbers(than));
    let at = |numbers: &[u64], i: usize| numbers.get(i).copied().unwrap_or(0);
    let differing = (0..version.len().max(than.len())).find(|i| at(&version, *i) != at(&than, *i));
    differing.is_some_and(|i| at(&version, i) > at(&than, i))
}

/// Files that were validated and scanned, ready to be stored.
pub struct Checked {
    files: Vec<(Upload, String)>,
    size: i64,
    finding_count: i64,
}

impl Checked {
    fn rows(&self) -> Vec<NewFile<'_>> {
        let mut rows = vec![];
        for (Upload { scope, path, content }, findings) in &self.files {
            rows.push(NewFile { scope: *scope, path, content, findings });
        }
        rows
    }

    fn equals(&self, stored: &[File]) -> bool {
        let by_place: HashMap<(Scope, &str), &str> =
            stored.iter().map(|f| ((f.scope, f.path.as_str()), f.content.as_str())).collect();
        let same = |(upload, _): &(Upload, String)| {
            by_place.get(&(upload.scope, upload.path.as_str())) == Some(&upload.content.as_str())
        };
        self.files.len() == stored.len() && self.files.iter().all(same)
    }

    fn describe(&self) -> String {
        format!("{} files, {} bytes, {} findings", self.files.len(), self.size, self.finding_count)
    }

    /// The audit entry is a warning if the scanner found anything.
    fn event<'a>(&self, id: &'a ItemId, detail: &'a str) -> AuditEvent<'a> {
        match self.finding_count {
            0 => AuditEvent::info(Action::ConfigChange, id.as_str(), detail),
            _ => AuditEvent::warn(Action::ConfigChange, id.as_str(), detail),
        }
    }
}

/// Validates sizes, paths and content of all files, then scans them.
pub async fn check(files: Vec<Upload>) -> Result<Checked> {
    // Scanning megabytes of text takes long and must not block a thread that serves requests.
    let checked = tokio::task::spawn_blocking(move || check_now(files)).await;
    checked.map_err(Error::internal)?
}

fn check_now(files: Vec<Upload>) -> Result<Checked> {
    if files.len() > FILES_MAX {
        return Err(Error::field("files", format_args!("an item has at most {FILES_MAX} files")));
    }
    let size: usize = files.iter().map(|f| f.content.len()).sum();
    for (i, file) in files.iter().enumerate() {
        let refuse = |problem: &dyn std::fmt::Display| Error::field(&format!("files[{i}] {}", file.path), problem);
        if file.content.len() > FILE_MAX {
            return Err(refuse(&"is larger than 1 MiB"));
        }
        if is_binary(&file.content) {
            return Err(refuse(&"is not text"));
        }
        if file.scope == Scope::Config {
            check_config(file).map_err(|problem| refuse(&problem))?;
        }
        let earlier = files[..i].iter().filter(|f| f.scope == file.scope);
        for other in earlier {
            if other.path == file.path {
                return Err(refuse(&"stands there twice"));
            }
            if other.path.is_below(&file.path) || file.path.is_below(&other.path) {
                return Err(refuse(&format_args!("cannot be a file and the folder of another ({})", other.path)));
            }
        }
    }
    if size > ITEM_MAX {
        let largest = files.iter().max_by_key(|f| f.content.len()).map_or("", |f| f.path.as_str());
        return Err(Error::field("files", format_args!("an item has at most 10 MiB; its largest file is {largest}")));
    }
    let mut finding_count = 0;
    let mut looked = vec![];
    for file in files {
        let findings = scanner::look(&file.content);
        finding_count += findings.len() as i64;
        looked.push((file, serde_json::to_string(&findings).map_err(Error::internal)?));
    }
    Ok(Checked { files: looked, size: size as i64, finding_count })
}

/// Whether the content has control characters that no text file has. Escape (0x1b) is accepted; the scanner reports it.
fn is_binary(content: &str) -> bool {
    content.bytes().any(|b| matches!(b, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f))
}

/// Keys of the configuration document that the platform writes itself.
const PLATFORM_KEYS: &[&str] = &["gateway", "meta", "models", "logging", "update"];

fn check_config(file: &Upload) -> Result<(), String> {
    let first = file.path.segments().next().unwrap_or_default().to_ascii_lowercase();
    if STATE_FOLDERS.contains(&first.as_str()) {
        return Err(format!("leads into {first}, which is the assistant's own"));
    }
    if !first.starts_with(CONFIG_DOCUMENT) {
        return Ok(());
    }
    if file.path.as_str() != CONFIG_DOCUMENT {
        return Err("is a copy that the assistant keeps itself".into());
    }
    let document: Value = serde_json::from_str(&file.content).map_err(|e| format!("is not JSON: {e}"))?;
    let document = document.as_object().ok_or("must be a JSON object: it is merged into the configuration")?;
    match PLATFORM_KEYS.iter().find(|key| document.contains_key(**key)) {
        Some(key) => Err(format!("must not set {key}: the platform does")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn upload(scope: Scope, path: &str, content: &str) -> Upload {
        Upload { scope, path: FilePath::parse(path).unwrap(), content: content.into() }
    }

    fn refused(files: Vec<Upload>) -> String {
        check_now(files).err().map(|e| e.client.into_owned()).unwrap_or_default()
    }

    #[test]
    fn versions_compare_by_their_numbers() {
        for (newer, older) in
            [("1.0.1", "1.0.0"), ("1.10.0", "1.9.9"), ("2", "1.9"), ("1.0.0.1", "1.0"), ("1", "draft")]
        {
            assert!(is_newer(newer, older), "{newer} {older}");
            assert!(!is_newer(older, newer), "{older} {newer}");
        }
        assert!(!is_newer("1.0", "1.0.0"));
    }

    #[test]
    fn sizes_are_taken_to_the_byte() {
        let file = |n: usize, path: &str| upload(Scope::Workspace, path, &"x".repeat(n));
        assert!(check_now(vec![file(FILE_MAX, "a.txt")]).is_ok());
        assert_eq!(
            refused(vec![file(1, "b.txt"), file(FILE_MAX + 1, "a.txt")]),
            "files[1] a.txt: is larger than 1 MiB"
        );
        let ten = |more: usize| {
            let mut files: Vec<Upload> = (0..10).map(|i| file(FILE_MAX, &format!("{i}.txt"))).collect();
            files.extend((0..more).map(|i| file(1, &format!("small-{i}"))));
            files
        };
        assert!(check_now(ten(0)).is_ok());
        assert!(refused(ten(1)).starts_with("files: an item has at most 10 MiB"));
        let many = |n: usize| (0..n).map(|i| file(1, &format!("{i}"))).collect();
        assert!(check_now(many(FILES_MAX)).is_ok());
        assert!(refused(many(FILES_MAX + 1)).contains("at most 200 files"));
    }

    #[test]
    fn places_do_not_collide() {
        let twice = |a: &str, b: &str| refused(vec![upload(Scope::Workspace, a, ""), upload(Scope::Workspace, b, "")]);
        assert!(twice("a/b", "a/b").ends_with("stands there twice"));
        assert!(twice("a", "a/b").contains("folder of another"));
        assert!(twice("a/b/c", "a").contains("folder of another"));
        assert_eq!(twice("a/b", "a/c"), "");
        assert_eq!(refused(vec![upload(Scope::Workspace, "a", ""), upload(Scope::Config, "a", "")]), "");
    }

    #[test]
    fn the_assistants_own_files_are_left_alone() {
        for path in [
            "agents/main/agent/auth-profiles.json",
            "workspace/SOUL.md",
            "state/openclaw.sqlite",
            "Credentials/x",
            "openclaw.json.bak",
        ] {
            assert_ne!(refused(vec![upload(Scope::Config, path, "{}")]), "", "{path}");
            assert_eq!(refused(vec![upload(Scope::Workspace, path, "{}")]), "", "{path}");
        }
        for document in ["", "[]", "{", "{\"gateway\": {\"port\": 1}}", "{\"meta\": {}}"] {
            assert_ne!(refused(vec![upload(Scope::Config, "openclaw.json", document)]), "", "{document}");
        }
        assert_eq!(refused(vec![upload(Scope::Config, "openclaw.json", "{\"messages\": {}}")]), "");
        assert_eq!(refused(vec![upload(Scope::Config, "templates/x.md", "text")]), "");
    }

    #[test]
    fn binary_content_is_refused_and_escape_sequences_are_flagged() {
        for binary in ["a\0b", "\u{1}", "GIF89a\u{1c}"] {
            assert!(refused(vec![upload(Scope::Workspace, "x.bin", binary)]).ends_with("is not text"));
        }
        let checked = check_now(vec![upload(Scope::Workspace, "a", "\u{1b}[2J\tx\r\n")]).unwrap();
        assert_eq!(checked.finding_count, 1);
    }

    proptest! {
        #[test]
        fn checking_never_panics(texts in proptest::collection::vec("\\PC{0,40}", 0..5)) {
            let files = texts.iter().enumerate().map(|(i, t)| upload(Scope::Workspace, &format!("f{i}"), t)).collect();
            let checked = check_now(files).unwrap();
            prop_assert_eq!(checked.size as usize, texts.iter().map(String::len).sum::<usize>());
        }
    }
}
