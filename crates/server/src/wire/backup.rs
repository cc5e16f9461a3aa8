//! A copy of the store.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// An absolute path on the daemon's machine, of a file that does not exist.
    pub path: String,
}

/// It was made, and read once as a start would read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Backup {
    /// Where it is.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}
