//! Sub keys of the LLM gateway.

/// The name of the platform's own key at the gateway, and what lists show in place of an instance for its calls.
pub const PLATFORM: &str = "admin-token";
pub const PLATFORM_MARK: &str = "admin token";
