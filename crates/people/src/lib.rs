//! People: accounts and how they sign in, and who holds which instance. Nothing here knows a server. What must happen
//! on a server when an instance gets a new holder is a task (`task`) that a crate above runs.

pub mod admin_user;
pub mod binding;
pub mod bootstrap;
mod caller;
pub mod chat_binding;
pub mod chat_sender;
pub mod claim;
pub mod hashing;
pub mod holder;
pub mod login;
pub mod password_reset;
pub mod pool;
pub mod second_factor;
pub mod session;
pub mod sso;
pub mod task;
pub mod token;
pub mod user;
pub mod user_import;

use std::ops::Deref;
use std::sync::Arc;

use remote::jwks::Jwks;
use remote::sso::Provider;

use hashing::Hasher;
use token::TokenKey;

/// The dependencies that the functions of this crate take.
pub struct App {
    pub llm: Arc<llm::App>,
    pub hasher: Hasher,
    pub employee: Side,
    pub admin: Side,
    pub proxy: Option<IdentityProxy>,
    /// Who must have a second factor.
    pub mfa: second_factor::Policy,
}

#[cfg(any(test, feature = "testing"))]
impl App {
    /// With passwords alone, and token keys that nobody else has.
    pub fn for_tests(llm: llm::App) -> base::Result<App> {
        let side = |audience| {
            let key = base::secret::random_token()?;
            let tokens = TokenKey::new(&key, audience, jiff::SignedDuration::from_hours(1));
            Ok::<_, base::Error>(Side { tokens, sso: None, newcomers: Newcomers::default() })
        };
        Ok(App {
            llm: Arc::new(llm),
            hasher: Hasher::default(),
            employee: side(token::Audience::Employee)?,
            admin: side(token::Audience::Admin)?,
            proxy: None,
            mfa: second_factor::Policy::default(),
        })
    }
}

impl Deref for App {
    type Target = llm::App;

    fn deref(&self) -> &llm::App {
        &self.llm
    }
}

impl<T> AsRef<T> for App
where
    llm::App: AsRef<T>,
{
    fn as_ref(&self) -> &T {
        (*self.llm).as_ref()
    }
}

/// How one of the two kinds of accounts logs in.
pub struct Side {
    pub tokens: TokenKey,
    pub sso: Option<Provider>,
    pub newcomers: Newcomers,
}

/// For whom an account is created at the first sign-on: people whom the identity provider knows and we do not.
#[derive(Clone, Debug, Default)]
pub struct Newcomers {
    pub welcome: bool,
    /// The e-mail domains that are welcome; empty means any.
    pub domains: Vec<String>,
    /// A claim that the token must have, and its value.
    pub claim: Option<(String, String)>,
}

/// A proxy in front of us that signs the identity of the caller (POST /auth/verify).
pub struct IdentityProxy {
    pub issuer: String,
    pub audience: Option<String>,
    pub keys: Jwks,
}
