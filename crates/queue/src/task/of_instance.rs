//! Task types about one instance: their payload has an `instance_id`, and some have more fields.

/// Declares payloads: `Name = "type_name" { other: Type } for Permission at Priority, coalesces, raises`. The last two
/// are optional.
#[macro_export]
macro_rules! of_instance {
    ($($(#[$meta:meta])* $name:ident = $type:literal { $($field:ident: $of:ty),* } for $permission:ident at $priority:ident$(, $property:ident)*;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            pub instance_id: base::id::InstanceId,
            $(pub $field: $of,)*
        }

        impl $crate::task::Payload for $name {
            const TYPE: &'static str = $type;
            const PRIORITY: $crate::task::Priority = $crate::task::Priority::$priority;
            const PERMISSION: $crate::permission::Permission = $crate::permission::Permission::$permission;
            $($crate::of_instance!(@property $property);)*

            async fn instance(&self, _: &mut store::Tx) -> base::Result<Option<base::id::InstanceId>> {
                Ok(Some(self.instance_id.clone()))
            }
        }
    )*};
    (@property coalesces) => { const COALESCES: bool = true; };
    (@property raises) => { const RAISES: bool = true; };
}
