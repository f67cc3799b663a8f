//! Tasks that write keys and models to instances. A crate that knows servers runs them.

queue::of_instance! {
    /// Copy the model list into the instance's configuration.
    SyncModelsToInstance = "sync_models_to_instance" {} for ManageInstances at Background, coalesces, raises;
    /// Write the instance's sub key into its configuration.
    SyncKeyToInstance = "sync_key_to_instance" {} for ManageInstances at People, coalesces, raises;
}
