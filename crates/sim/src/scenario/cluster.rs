//! The part of a scenario file that a real cluster has, too: `[pool]` or `[[pools]]`, `node_list`, `[policy]`. Other programs' files hold it in the
//! same words, beside tables of their own.

use super::Pool;
use super::error::ScenarioError;
use super::file::PoolFile;
use super::knobs::KnobsFile;
use super::pool::{Hardware, Written};
use super::source::Source;
use crate::plain::plain;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::Path;
use stipend_core::knobs::Knobs;
use stipend_core::spec::NodeSpec;
use toml::Spanned;

/// Pools with their knobs, and nodes.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// By number.
    pub pools: Vec<Pool>,
    /// By number, pool after pool.
    pub nodes: Vec<NodeSpec>,
    /// What the nodes are called, by number; empty where the file gives no name.
    pub node_names: Vec<String>,
    /// What the bits of the nodes' features mean, from the lowest.
    pub features: Vec<String>,
}

/// The file as written; what belongs to the daemon is read by the daemon.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterFile {
    pool: Option<Spanned<PoolFile>>,
    #[serde(default)]
    pools: Vec<Spanned<PoolFile>>,
    node_list: Option<Spanned<String>>,
    #[serde(default)]
    policy: KnobsFile,
    /// The first budgets.
    #[serde(rename = "budgets")]
    _budgets: Option<IgnoredAny>,
    /// How the daemon itself works.
    #[serde(rename = "daemon")]
    _daemon: Option<IgnoredAny>,
}

/// Reads the tables that another program adds to such a file; what they do not name is left alone.
///
/// # Errors
/// What cannot be read, with its place and what would be right.
pub fn parse_part<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, ScenarioError> {
    let source = Source { file, text, overrides: &[] };
    toml::from_str(text).map_err(|error| source.toml_error(&error))
}

/// Knobs as `[policy]` writes them, over others.
///
/// # Errors
/// Which knob is wrong, and what would be right.
pub fn knobs_over(written: &serde_json::Map<String, serde_json::Value>, knobs: Knobs) -> Result<Knobs, String> {
    let mut over = knobs;
    for (name, value) in written {
        let one = serde_json::Map::from_iter([(name.clone(), value.clone())]);
        let file: KnobsFile = serde_json::from_value(one.into()).map_err(|error| match error.to_string() {
            unknown if unknown.starts_with("unknown field") => unknown,
            wrong => format!("{name} = {value}: {}", plain(&wrong)),
        })?;
        over = file.over(over);
    }
    Ok(over)
}

impl Cluster {
    /// Reads it from `text`, which `file` names in messages; relative paths in it begin at `folder`. `None` if it has no pools.
    ///
    /// # Errors
    /// What cannot be read, with its place and what would be right.
    pub fn parse(file: &str, text: &str, folder: &Path) -> Result<Option<Cluster>, ScenarioError> {
        let source = Source { file, text, overrides: &[] };
        let written: ClusterFile = toml::from_str(text).map_err(|error| source.toml_error(&error))?;
        if written.pool.is_none() && written.pools.is_empty() && written.node_list.is_none() {
            return Ok(None);
        }
        let ClusterFile { pool, pools, node_list, policy, .. } = &written;
        let hardware = Hardware::build(&source, &Written { pool, pools, node_list, policy }, folder)?;
        Ok(Some(Cluster { pools: hardware.pools, nodes: hardware.nodes, node_names: hardware.names, features: hardware.features }))
    }
}
