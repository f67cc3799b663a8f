//! What handlers take as arguments: who is asking, and what for, checked before the handler runs.

mod body;
mod caller;
mod identity;
mod paging;
mod path;
mod query;

pub use body::{Body, collect};
pub use caller::{Caller, Peer, is_trusted_proxy};
pub use identity::{Admin, Employee, bearer};
pub use paging::Paging;
pub use path::Path;
pub use query::Query;

/// What a handler answers.
pub type Answer<T> = Result<crate::envelope::Data<T>, crate::error::ApiError>;

/// The state, as handlers name it.
pub type State = axum::extract::State<crate::state::Shared>;
