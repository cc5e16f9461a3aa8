//! The event log.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// Which lines of the event log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct EventFilter {
    /// From the line of this number on. Default: 1; when the log is followed, from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Only about this workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<u32>,
    /// Only of these kinds, with commas between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// At most so many, 1 to 10,000. Default 1,000; it means nothing when the log is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Go on without end, as server-sent events.
    pub follow: bool,
}
