//! Finds the profession that a cell of an import names, by its code or its name.

use base::Result;
use store::profession::{self, Profession};

use super::refusal::{Reason, Refusal};
use crate::App;

pub struct Professions(Vec<Profession>);

impl Professions {
    pub async fn load(app: &App) -> Result<Professions> {
        Ok(Professions(profession::all(&app.db).await?))
    }

    /// A code is unique, so it comes first. Several professions may share a name.
    pub fn named(&self, cell: &str) -> Result<&Profession, Refusal> {
        let refuse = |reason, problem: String| Err(Refusal::field(reason, "profession", problem));
        let is = |text: &str| text.trim().to_lowercase() == cell.trim().to_lowercase();
        let by_name = || self.0.iter().filter(|profession| is(&profession.name));
        let found: Vec<&Profession> = match self.0.iter().find(|profession| is(&profession.code)) {
            Some(profession) => vec![profession],
            None if by_name().any(|profession| profession.is_active) => by_name().filter(|p| p.is_active).collect(),
            None => by_name().collect(),
        };
        match found[..] {
            [] => refuse(Reason::ProfessionUnknown, format!("there is none with the code or name {cell:?}")),
            [profession] if profession.is_active => Ok(profession),
            [_, _, ..] if found.iter().all(|profession| profession.is_active) => {
                refuse(Reason::ProfessionAmbiguous, format!("{} have the name {cell:?}; use the code", found.len()))
            }
            _ => refuse(Reason::ProfessionInactive, format!("{cell:?} is not offered any more")),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::id::ProfessionId;

    use super::*;

    fn profession(code: &str, name: &str, is_active: bool) -> Profession {
        Profession {
            id: ProfessionId::fresh(),
            name: name.into(),
            code: code.into(),
            icon: String::new(),
            tagline: String::new(),
            description: String::new(),
            role_pack_id: None,
            sort_order: 0,
            is_official: false,
            is_active,
            created_at: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_profession_is_found_by_its_code_then_by_its_name() {
        let all = Professions(vec![
            profession("sales", "Sales", true),
            profession("support", "Support", true),
            profession("support-2", "Support", true),
            profession("old", "Typist", false),
            profession("law-old", "Law", false),
            profession("law", "Law", true),
            // Its name is another's code.
            profession("x", "sales", true),
        ]);
        let named = |cell| all.named(cell).map(|p| p.code.as_str()).map_err(|refusal| refusal.reason);
        assert_eq!(named(" SALES "), Ok("sales"));
        assert_eq!(named("support"), Ok("support"), "the code decides, although two have the name");
        assert_eq!(named("Law"), Ok("law"), "one that is not offered is no choice");
        assert_eq!(named("law-old"), Err(Reason::ProfessionInactive));
        assert_eq!(named("Typist"), Err(Reason::ProfessionInactive));
        assert_eq!(named("cook"), Err(Reason::ProfessionUnknown));
        let all = Professions(vec![profession("a", "Support", true), profession("b", "support", true)]);
        assert_eq!(all.named("Support").unwrap_err().reason, Reason::ProfessionAmbiguous);
        let all = Professions(vec![profession("a", "Typist", false), profession("b", "Typist", false)]);
        assert_eq!(all.named("Typist").unwrap_err().reason, Reason::ProfessionInactive);
    }
}
