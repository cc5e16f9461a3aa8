//! Lists in parts.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The part.
    pub items: Vec<T>,
    /// Pass it as `cursor` to get the next part; absent in the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct Cursor {
    /// From the answer before.
    pub cursor: Option<String>,
    /// At most so many, 1 to 1000. Default 100.
    pub limit: Option<u32>,
}
