//! The budget tree: as it is, and as it is changed.

use super::length::Length;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// One value for all pools, or one a pool by name. Where there may be none, `"none"` says that.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged, bound(serialize = "T: Serialize"))]
pub enum PerPool<T> {
    /// The same in all pools.
    All(#[serde(serialize_with = "said")] T),
    /// By pool; pools that are not named have none.
    By(BTreeMap<String, T>),
}

/// What stands for a value that is none: null would say that nothing is stated.
const NONE: &str = "none";

fn said<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    match serde_json::to_value(value).map_err(serde::ser::Error::custom)? {
        Value::Null => serializer.serialize_str(NONE),
        value => value.serialize(serializer),
    }
}

/// By hand, so that what is wrong is said of the value that is wrong.
impl<'de, T: DeserializeOwned> Deserialize<'de> for PerPool<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PerPool<T>, D::Error> {
        let read = |value: Value| {
            let value = if value == NONE { Value::Null } else { value };
            serde_json::from_value(value).map_err(serde::de::Error::custom)
        };
        match Value::deserialize(deserializer)? {
            Value::Object(pools) => {
                pools.into_iter().map(|(pool, value)| Ok((pool, read(value)?))).collect::<Result<_, _>>().map(PerPool::By)
            }
            value => read(value).map(PerPool::All),
        }
    }
}

/// A budget as a changeset states it: what is left out of an existing budget stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetChange {
    /// Its path now; a path that does not exist is a new budget.
    pub path: String,
    /// Percent of its parent, with up to four decimals. A new budget must state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<PerPool<f64>>,
    /// The most GPUs its allocated work may hold at once; `"none"` lifts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_max: Option<PerPool<Option<u32>>>,
    /// The most GPUs its unallocated work may hold at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unallocated_gpus_max: Option<PerPool<Option<u32>>>,
    /// The longest contract that may start here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_runtime_max: Option<PerPool<Option<Length>>>,
    /// The order of a leaf's work: `priority`, `fifo`, `shortest-contract` or `completion`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// Who may change its descendants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managers: Option<Vec<String>>,
    /// Who may submit to it and below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<String>>,
    /// Closed: no new work, waiting work held, running work goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<bool>,
    /// Its new path (another name, or another parent).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rename_to: Option<String>,
}

/// A change of the tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangesetRequest {
    /// The version it was made from; one that is stale is refused.
    pub based_on: u32,
    /// Why.
    pub reason: String,
    /// From when on; default: now. Milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_ms: Option<i64>,
    /// What.
    pub budgets: Vec<BudgetChange>,
}

/// A budget as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Budget {
    /// Its number, never used again.
    pub id: u32,
    /// Its path.
    pub path: String,
    /// Whether work runs in it.
    pub leaf: bool,
    /// Closed budgets take no new work.
    pub closed: bool,
    /// Who may change its descendants.
    pub managers: Vec<String>,
    /// Who may submit to it and below.
    pub members: Vec<String>,
    /// The order of a leaf's work.
    pub order: String,
    /// In each pool.
    pub pools: Vec<BudgetInPool>,
}

/// A budget in one pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BudgetInPool {
    /// The pool.
    pub pool: String,
    /// Percent of its parent.
    pub share_percent: f64,
    /// Its part of the pool, 0 to 1.
    pub claim: f64,
    /// Used, lapsed and committed by what it is entitled to: 1 is what it is owed; `null` where it is entitled to nothing.
    pub standing: Option<f64>,
    /// Whether it is below its share, and so goes first.
    pub below_share: bool,
    /// GPUs its allocated work holds.
    pub allocated_gpus: u32,
    /// GPUs its unallocated work holds.
    pub unallocated_gpus: u32,
    /// GPUs its waiting work asks for.
    pub waiting_gpus: u64,
    /// A cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_max: Option<u32>,
    /// A cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unallocated_gpus_max: Option<u32>,
    /// A cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_runtime_max_ms: Option<i64>,
}

/// The tree at one version; `version` is its ETag, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Tree {
    /// How many changesets made it.
    pub version: u32,
    /// Parents before children.
    pub budgets: Vec<Budget>,
}

/// A changeset that was made: applied, or waiting for its date.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Changeset {
    /// Its number.
    pub id: u64,
    /// The version that it made; absent while it waits for its date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Who.
    pub author: String,
    /// Why.
    pub reason: String,
    /// When it was made.
    pub made_ms: i64,
    /// From when on.
    pub effective_ms: i64,
    /// Taken back before its date.
    pub withdrawn: bool,
    /// What, as it was asked for.
    pub budgets: Vec<BudgetChange>,
    /// What it changed, a line each: `lab/nlp share 40 % -> 50 %`.
    pub difference: Vec<String>,
}

/// Whether a change is made or only looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct DryRun {
    /// Only say what it would change.
    pub dry_run: bool,
}

/// How a sheet is taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct SheetImport {
    /// The version that the sheet was exported from; default: the tree as it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub based_on: Option<u32>,
    /// Why.
    pub reason: String,
    /// From when on; default: now. Milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_ms: Option<i64>,
    /// Only say what it would change.
    pub dry_run: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<BudgetChange, String> {
        serde_json::from_str(&format!("{{\"path\": \"lab\", {json}}}")).map_err(|error| error.to_string())
    }

    #[test]
    fn caps_are_numbers_or_none() {
        for (json, cap) in [
            ("\"gpus_max\": 8", Some(PerPool::All(Some(8)))),
            ("\"gpus_max\": \"none\"", Some(PerPool::All(None))),
            ("\"gpus_max\": null", None),
            ("\"gpus_max\": {\"a\": \"none\", \"b\": null, \"c\": 3}", {
                Some(PerPool::By([("a".into(), None), ("b".into(), None), ("c".into(), Some(3))].into()))
            }),
        ] {
            let change = read(json).expect(json);
            assert_eq!(change.gpus_max, cap);
            // As a changeset that waits for its date is kept.
            let kept = serde_json::to_string(&change).expect("plain data");
            assert_eq!(serde_json::from_str::<BudgetChange>(&kept).expect("just written"), change, "{kept}");
        }
        let toml: BudgetChange = toml::from_str("path = \"lab\"\nmin_runtime_max = \"none\"\nshare = 12.5\n").expect("it can be read");
        assert_eq!((toml.min_runtime_max, toml.share), (Some(PerPool::All(None)), Some(PerPool::All(12.5))));
    }

    #[test]
    fn what_is_wrong_is_said_of_the_value() {
        assert!(read("\"gpus_max\": \"many\"").expect_err("no number").contains("string \"many\", expected u32"));
        assert!(read("\"share\": {\"a\": true}").expect_err("no number").contains("boolean `true`, expected f64"));
    }
}
