//! What is bad about servers and what is on them, each met by the real handlers on a real host.

use std::time::Duration;

use serde_json::json;

use crate::kit::hosts::Ground;
