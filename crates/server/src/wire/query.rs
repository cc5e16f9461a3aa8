//! What is asked of one workload, in the query.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// How a workload is cancelled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct Cancel {
    /// Why, for its owner; at most 500 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What to say of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct Show {
    /// If it waits, `why` says what stops it now.
    pub explain: bool,
}

/// How long to wait for a workload's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct Wait {
    /// Seconds; 50 at most, and by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u32>,
}

/// Which output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct Output {
    /// Of which member, by rank. Default 0.
    pub member: u32,
    /// Of which attempt, from 1. Default: the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// From this byte on.
    pub offset: u64,
    /// Go on as the program writes, through all further attempts, until the workload has ended.
    pub follow: bool,
}
