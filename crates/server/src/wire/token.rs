//! Who may do what.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the bearer of a token may do. Each role may do all that those after it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything.
    Admin,
    /// Drain and resume nodes; see everything.
    Operator,
    /// What the tree says of its user: manage the descendants of budgets that name it a manager, submit into budgets that name it a member,
    /// cancel own work; see everything.
    User,
    /// See everything.
    Viewer,
}

/// Make a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// For whom.
    pub user: String,
    /// Default `user`.
    #[serde(default = "user")]
    pub role: Role,
    /// What it is for.
    #[serde(default)]
    pub note: String,
}

fn user() -> Role {
    Role::User
}

/// A new token. It is shown this once; only its hash is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// Its number, to take it back.
    pub id: u64,
    /// The secret.
    pub token: String,
}

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its number.
    pub id: u64,
    /// For whom.
    pub user: String,
    /// What it may do.
    pub role: Role,
    /// What it is for.
    pub note: String,
    /// When it was made.
    pub made_ms: i64,
    /// When it was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<i64>,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhoAmI {
    /// Their name.
    pub user: String,
    /// What they may do at all.
    pub role: Role,
    /// Budgets that name them a manager: they change what is below.
    pub manages: Vec<String>,
    /// Budgets that name them a member: they submit to these and to what is below.
    pub member_of: Vec<String>,
}
