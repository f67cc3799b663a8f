//! What both sides say about items of the marketplace.

use serde::Serialize;
use utoipa::ToSchema;

/// A profession whose role pack an item is.
#[derive(Serialize, ToSchema)]
pub struct ItemProfession {
    id: String,
    #[schema(example = "Financial analyst")]
    name: String,
}

impl From<fleet::marketplace::Profession> for ItemProfession {
    fn from(profession: fleet::marketplace::Profession) -> ItemProfession {
        ItemProfession { id: profession.id.into(), name: profession.name }
    }
}
