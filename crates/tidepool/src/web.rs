//! The built web apps, embedded in the binary. Without them the binary still builds, and shows a page that says so.

use std::borrow::Cow;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../../web/employee/dist"]
#[allow_missing = true]
struct Employee;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../../web/admin/dist"]
#[allow_missing = true]
struct Admin;

pub fn employee(name: &str) -> Option<Cow<'static, [u8]>> {
    Employee::get(name).map(|file| file.data)
}

pub fn admin(name: &str) -> Option<Cow<'static, [u8]>> {
    Admin::get(name).map(|file| file.data)
}
