//! The daemon's configuration: one TOML file. Pools and knobs are written as in a scenario, budgets as in a changeset.

use crate::driver::EngineNode;
use crate::wire::budget::BudgetChange;
use crate::wire::length::Length;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::Span;
use stipend_sim::scenario::{Cluster, ScenarioError};

/// Everything that the file says, with defaults for the rest.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Pools by number, each with its knobs; none means that the machine is looked at.
    pub pools: Vec<PoolConfig>,
    /// Virtual nodes; none means that the machine is looked at.
    pub nodes: Vec<EngineNode>,
    /// The first budgets; they count only while there is no tree.
    pub budgets: Vec<BudgetChange>,
    /// `[daemon]`.
    pub daemon: DaemonConfig,
}

/// A pool.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Its name.
    pub name: String,
    /// Its knobs.
    pub knobs: Knobs,
}

/// `[daemon]`: how the daemon itself works.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DaemonConfig {
    /// Where the API listens, beside the socket in the data folder. Default `127.0.0.1:7411`.
    pub listen: String,
    /// Whom workloads run as where the daemon is root: `submitter` (default), whose account must exist here, or `daemon`.
    pub run_as: RunAs,
    /// Run when a drained node is to be repaired, with `STIPEND_NODE` and `STIPEND_REASON`. Default: none, a person resumes the node.
    pub repair_command: Vec<String>,
    /// Run after the repair: the node comes back if it exits with 0. Default: none.
    pub health_command: Vec<String>,
    /// GPUs of a lease that do nothing for so long are shown as idle. Default 10 min.
    pub idle_after: Length,
    /// At most so many workloads may wait, of all users together. Default 200,000.
    pub waiting_max: usize,
    /// At most so many of one user. Default 20,000.
    pub waiting_per_user_max: usize,
    /// At most so many requests a second of one user, averaged over ten seconds. Default 200.
    pub requests_per_second_max: u32,
    /// Output kept of each member of a workload, in MiB; beyond it the middle is left out. Default 64.
    pub output_max_mib: u64,
    /// Output kept of workloads that have ended, in MiB. Default 4096.
    pub output_kept_mib: u64,
    /// Workloads that have ended, and lines of the event log, are kept for so long. Default 0: for ever.
    pub keep_history: Length,
    /// Called when something happens.
    pub webhooks: Vec<Webhook>,
}

/// Whom workloads run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunAs {
    /// The account of whoever submitted it.
    Submitter,
    /// The daemon's own.
    Daemon,
}

/// A receiver of events.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// `http://host:port/path`.
    pub url: String,
    /// Which: `started`, `preempting`, `ended`, `node`, `reserved`, or any other event of the log.
    pub events: Vec<String>,
    /// Signs each call. Default: calls are not signed.
    pub secret: Option<String>,
}

impl Default for DaemonConfig {
    fn default() -> DaemonConfig {
        DaemonConfig {
            listen: "127.0.0.1:7411".into(),
            run_as: RunAs::Submitter,
            repair_command: Vec::new(),
            health_command: Vec::new(),
            idle_after: Length(Span::minutes(10)),
            waiting_max: 200_000,
            waiting_per_user_max: 20_000,
            requests_per_second_max: 200,
            output_max_mib: 64,
            output_kept_mib: 4096,
            keep_history: Length(Span::ZERO),
            webhooks: Vec::new(),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something in it is wrong.
    #[error(transparent)]
    Wrong(#[from] ScenarioError),
}

/// What is the daemon's own in the file. The rest has been checked by [`Cluster::parse`].
#[derive(Default, Deserialize)]
#[serde(default)]
struct OwnFile {
    daemon: DaemonConfig,
    budgets: Vec<BudgetChange>,
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong, with file, line, value and what would be right.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.into(), source })?;
        Config::parse(&path.display().to_string(), &text, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads the text of the file called `file`; relative paths in it begin at `folder`.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(file: &str, text: &str, folder: &Path) -> Result<Config, ConfigError> {
        let cluster = Cluster::parse(file, text, folder)?;
        let OwnFile { daemon, budgets } = stipend_sim::scenario::parse_part(file, text)?;
        let Some(cluster) = cluster else { return Ok(Config { budgets, daemon, ..Config::default() }) };
        let nodes = nodes(&cluster);
        let pools = cluster.pools.into_iter().map(|pool| PoolConfig { name: pool.name, knobs: pool.knobs }).collect();
        Ok(Config { pools, nodes, budgets, daemon })
    }
}

/// The nodes with names: those without one are called after their pool.
fn nodes(cluster: &Cluster) -> Vec<EngineNode> {
    let mut in_pool = vec![0; cluster.pools.len()];
    let node = |(number, spec): (usize, &stipend_core::spec::NodeSpec)| {
        let pool = &cluster.pools[spec.pool.index()];
        let place = &mut in_pool[spec.pool.index()];
        *place += 1;
        let written = cluster.node_names.get(number).filter(|name| !name.is_empty());
        EngineNode {
            name: written.cloned().unwrap_or_else(|| format!("{}-{place}", pool.name)),
            pool: pool.name.clone(),
            gpus: spec.gpus,
            cpus: spec.cpus,
            memory: spec.memory,
            block: format!("{}/{}", pool.name, spec.block),
            features: features(spec.features.0, &cluster.features),
            express: spec.express,
        }
    };
    cluster.nodes.iter().enumerate().map(node).collect()
}

fn features(bits: u64, names: &[String]) -> Vec<String> {
    names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn error(text: &str) -> String {
        Config::parse("stipend.toml", text, Path::new("")).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_file() {
        let text = "[pool]\nname = \"h100\"\nnodes = 2\ngpus_per_node = 8\n[policy]\nlookback = \"1d\"\n[[budgets]]\npath = \"lab\"\nmembers = [\"*\"]\n[daemon]\nlisten = \"127.0.0.1:0\"\nidle_after = \"5m\"\n";
        let config = Config::parse("stipend.toml", text, Path::new("")).unwrap();
        assert_eq!(config.pools[0].name, "h100");
        assert_eq!(config.pools[0].knobs.lookback, Span::days(1));
        assert_eq!(config.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["h100-1", "h100-2"]);
        assert_eq!(config.budgets[0].members.as_deref(), Some(&["*".to_string()][..]));
        assert_eq!(config.daemon.idle_after, Length(Span::minutes(5)));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        assert!(
            error("[daemon]\nlissten = \"x\"\n").starts_with("stipend.toml:2: `lissten = \"x\"`"),
            "{}",
            error("[daemon]\nlissten = 1\n")
        );
        assert!(error("[demon]\n").contains("stipend.toml:1"), "{}", error("[demon]\n"));
        assert!(error("[policy]\nlookback = \"soon\"\n[pool]\nnodes = 1\n").contains("stipend.toml:2"));
        assert!(error("[[budgets]]\npath = \"lab\"\nshares = 3\n").contains("stipend.toml:3"));
    }

    /// The fields of a section, from the program's own answer to one that is not there.
    fn fields(section: &str) -> BTreeSet<String> {
        let message = error(&format!("{section}\nzzzz = 1\n"));
        let (_, expected) = message.split_once("expected ").unwrap_or_else(|| panic!("{message}"));
        let list = expected.split("; did you mean").next().unwrap_or_default();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_reference_has_all_fields_with_their_defaults() {
        let page = include_str!("../../../docs/reference/config.md");
        let (above, hooks) = page.split_once("## `[[daemon.webhooks]]`").expect("a section");
        let (_, own) = above.split_once("## `[daemon]`").expect("a section");
        let rows = |part: &str| -> Vec<Vec<String>> {
            let rows = part.lines().filter(|line| line.starts_with("| `"));
            rows.map(|row| row.split('`').skip(1).step_by(2).map(str::to_owned).collect()).collect()
        };
        let names = |part: &str| -> BTreeSet<String> { rows(part).into_iter().map(|cells| cells[0].clone()).collect() };
        let mut known = fields("[daemon]");
        assert!(known.remove("webhooks"));
        assert_eq!(names(own), known, "left is the page, right the program");
        assert_eq!(names(hooks), fields("[[daemon.webhooks]]"), "left is the page, right the program");
        for cells in rows(own) {
            let text = format!("[daemon]\n{} = {}\n", cells[0], cells[1]);
            let config = Config::parse("stipend.toml", &text, Path::new("")).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(config.daemon, DaemonConfig::default(), "{text}");
        }
        let (_, example) = page.split_once("```toml\n").expect("an example");
        let example = example.split("```").next().unwrap_or_default();
        let config = Config::parse("stipend.toml", example, Path::new("")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((config.nodes.len(), config.pools[0].knobs.min_runtime_max), (2, Span::hours(4)));
    }

    #[test]
    fn an_empty_file_is_a_machine_with_its_defaults() {
        let config = Config::parse("stipend.toml", "", Path::new("")).unwrap();
        assert!(config.pools.is_empty() && config.nodes.is_empty() && config.budgets.is_empty());
    }
}
