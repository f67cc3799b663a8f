//! The marketplace items that come with the product, embedded in the binary: the folder `catalogue` of the repository.

use std::collections::BTreeMap;

use base::id::ItemId;
use base::{Error, FilePath, Result};
use fleet::marketplace::{Catalogued, Kind, New, Scope, Upload};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../../catalogue"]
struct Files;

/// Every item of the catalogue. A mistake in it is a bug, so the tests read all of it.
pub fn items() -> Result<Vec<Catalogued>> {
    let mut folders: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in Files::iter() {
        // A file outside of the folders is documentation.
        let Some((folder, rest)) = name.split_once('/') else { continue };
        folders.entry(folder.to_owned()).or_default().push(rest.to_owned());
    }
    folders.iter().map(|(folder, files)| item(folder, files)).collect()
}

fn item(folder: &str, files: &[String]) -> Result<Catalogued> {
    let about = format!("{folder}/item.toml");
    let table: toml::Table = text(&about)?.parse().map_err(|e| wrong(&about, e))?;
    let field = |name: &str| {
        let value = table.get(name).and_then(toml::Value::as_str);
        value.map(str::to_owned).ok_or_else(|| wrong(&about, format_args!("has no {name}")))
    };
    if field("id")? != folder {
        return Err(wrong(&about, "its id is not the name of its folder"));
    }
    let mut uploads = vec![];
    for name in files.iter().filter(|name| *name != "item.toml") {
        let whole = format!("{folder}/{name}");
        let (scope, path) = name.split_once('/').ok_or_else(|| wrong(&whole, "lies in no scope"))?;
        uploads.push(Upload {
            scope: Scope::parse(scope).ok_or_else(|| wrong(&whole, "lies in no scope"))?,
            path: FilePath::parse(path).map_err(|e| wrong(&whole, e))?,
            content: text(&whole)?,
        });
    }
    let new = New {
        kind: Kind::parse(&field("type")?).ok_or_else(|| wrong(&about, "its type is unknown"))?,
        name: field("name")?,
        description: field("description")?,
        icon: field("icon")?,
        version: field("version")?,
        is_active: true,
        files: uploads,
    };
    Ok(Catalogued { id: ItemId::named(folder), new })
}

fn text(name: &str) -> Result<String> {
    let file = Files::get(name).ok_or_else(|| wrong(name, "is missing"))?;
    String::from_utf8(file.data.into_owned()).map_err(|e| wrong(name, e))
}

fn wrong(name: &str, problem: impl std::fmt::Display) -> Error {
    Error::internal(format_args!("catalogue/{name}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Name, Text};

    #[test]
    fn the_catalogue_holds_six_skills_and_three_role_packs_that_fit_the_fields() {
        let items = items().unwrap();
        let count = |kind| items.iter().filter(|i| i.new.kind == kind).count();
        assert_eq!((count(Kind::Skill), count(Kind::RolePack), items.len()), (6, 3, 9));
        for Catalogued { id, new } in &items {
            let id = id.as_str();
            let prefix = if new.kind == Kind::Skill { "skill-" } else { "role-" };
            assert!(id.starts_with(prefix), "{id}");
            assert!(Name::<100>::parse(&new.name).is_ok() && Name::<2000>::parse(&new.description).is_ok(), "{id}");
            assert!(!new.icon.is_empty() && Text::<32>::parse(&new.icon).is_ok(), "{id}");
            assert_eq!(new.version.split('.').filter(|n| n.parse::<u32>().is_ok()).count(), 3, "{id}");
        }
    }

    #[tokio::test]
    async fn the_catalogue_fits_the_limits_and_has_no_finding() {
        for Catalogued { id, new } in items().unwrap() {
            for file in &new.files {
                assert_eq!(scanner::look(&file.content), vec![], "{id} {}", file.path);
            }
            fleet::marketplace::check(new.files).await.map(drop).unwrap_or_else(|e| panic!("{id}: {e}"));
        }
    }

    /// What OpenClaw reads: `skills/<name>/SKILL.md` with name and description in front; `SOUL.md` in the workspace.
    #[test]
    fn skills_and_role_packs_have_the_form_that_the_assistant_reads() {
        for Catalogued { id, new } in items().unwrap() {
            let find = |path: &str| new.files.iter().find(|f| f.path.as_str() == path && f.scope == Scope::Workspace);
            if new.kind == Kind::RolePack {
                assert!(find("SOUL.md").is_some() && find("IDENTITY.md").is_some(), "{id}");
                every_mentioned_file_is_there(&id, &new.files);
                continue;
            }
            let name = id.as_str().trim_start_matches("skill-");
            let skill = find(&format!("skills/{name}/SKILL.md")).unwrap_or_else(|| panic!("{id} has no SKILL.md"));
            let front: Vec<&str> = skill.content.lines().skip(1).take_while(|l| *l != "---").collect();
            assert!(skill.content.starts_with("---\n"), "{id}");
            assert_eq!(front[0], format!("name: {name}"));
            let description = front[1].strip_prefix("description: ").unwrap();
            // A colon or a hash would need quotes in YAML.
            assert!(!description.contains(": ") && !description.contains(" #"), "{id}");
            assert!(description.contains("Use when") && description.len() <= 1024 && front.len() == 2, "{id}");
            if skill.content.contains("`template.md`") {
                assert!(find(&format!("skills/{name}/template.md")).is_some(), "{id} mentions a template");
            }
        }
    }

    fn every_mentioned_file_is_there(id: &ItemId, files: &[Upload]) {
        for file in files {
            let mentioned = file.content.split('`').filter(|word| word.starts_with("role/") && word.ends_with(".md"));
            for path in mentioned {
                assert!(files.iter().any(|f| f.path.as_str() == path), "{id}: {} mentions {path}", file.path);
            }
        }
    }
}
