//! `stipend node`.

use crate::failure::{Answer, Outcome};
use crate::moment::{Date, clock, now_ms};
use crate::names::{self, Id, word};
use crate::output::{self, Format};
use crate::remote::Remote;
use crate::table::{Column, Table};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use stipend_server::client::escape;
use stipend_server::wire::node::{DrainRequest, Node, Severity};

/// List nodes, take them out of service and back.
#[derive(Debug, Subcommand)]
pub(super) enum NodeCommand {
    List(List),
    Drain(Drain),
    Resume(Resume),
}

/// List nodes: their state, and what runs on them.
#[derive(Debug, Args)]
#[command(after_help = LIST)]
pub(super) struct List {
    #[command(flatten)]
    to: To,
}

const LIST: &str = "\
Examples:
  stipend node list
  stipend node list --format json";

/// Take a node out of service: its occupants go on until the last protection on it ends, then it is repaired.
#[derive(Debug, Args)]
#[command(after_help = DRAIN)]
pub(super) struct Drain {
    /// Which
    #[arg(value_name = "NODE", add = names::nodes())]
    node: String,
    /// Why; everybody on it is told
    #[arg(long, short, value_name = "TEXT")]
    reason: String,
    /// How urgently
    #[arg(long, value_enum, value_name = "HOW", default_value = "sick")]
    severity: SeverityFlag,
    /// It comes back by itself then, unrepaired: 2026-12-01, `2026-12-01 09:00`, +2h [default: after its repair, or by `stipend node resume`]
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    until: Option<Date>,
    #[command(flatten)]
    to: To,
}

const DRAIN: &str = "\
Examples:
  stipend node drain gpu-2 --reason 'fan 3 is loud'
  stipend node drain gpu-2 --severity maintenance --until +2h --reason 'new firmware'
  stipend node drain gpu-2 --severity critical --reason 'it burns'";

/// Take a node back into service.
#[derive(Debug, Args)]
#[command(after_help = RESUME)]
pub(super) struct Resume {
    /// Which
    #[arg(value_name = "NODE", add = names::nodes())]
    node: String,
    #[command(flatten)]
    to: To,
}

const RESUME: &str = "\
Examples:
  stipend node resume gpu-2";

/// How urgently a node drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SeverityFlag {
    /// Planned: what certainly ends before the drain's end may still start
    Maintenance,
    /// Nothing starts; occupants go on until their protection ends
    Sick,
    /// Everything stops at once, and is refunded
    Critical,
}

#[derive(Debug, Args)]
struct To {
    /// How to print it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

impl NodeCommand {
    pub(super) fn run(self) -> Outcome {
        match self {
            NodeCommand::List(List { to }) => {
                let nodes = to.remote.daemon()?.get::<Vec<Node>>("/v1/nodes")?;
                to.print(&nodes)
            }
            NodeCommand::Drain(Drain { node, reason, severity, until, to }) => {
                let severity = match severity {
                    SeverityFlag::Maintenance => Severity::Maintenance,
                    SeverityFlag::Sick => Severity::Sick,
                    SeverityFlag::Critical => Severity::Critical,
                };
                let request = DrainRequest { severity, reason, until_ms: until.map(|date| date.ms) };
                let node = to.remote.daemon()?.post::<Node>(&format!("/v1/nodes/{}/drain", escape(&node)), &request, &[])?;
                to.print(&[node])
            }
            NodeCommand::Resume(Resume { node, to }) => {
                let node = to.remote.daemon()?.post::<Node>(&format!("/v1/nodes/{}/resume", escape(&node)), &json!({}), &[])?;
                to.print(&[node])
            }
        }
    }
}

impl To {
    fn print(&self, nodes: &[Node]) -> Outcome {
        output::data(self.format, &nodes, || table(nodes, now_ms()).text(output::width()))?;
        Ok(Answer::Yes)
    }
}

pub(super) fn table(nodes: &[Node], now_ms: i64) -> Table {
    let mut table = Table::new(&[
        ("node", Column::Words),
        ("pool", Column::Words),
        ("state", Column::Words),
        ("GPUs", Column::Figures),
        ("used", Column::Figures),
        ("until", Column::Words),
        ("workloads", Column::Shrinks),
        ("reason", Column::Shrinks),
    ]);
    for node in nodes {
        let express = if node.express { ", express" } else { "" };
        let severity = node.severity.map_or(String::new(), |severity| format!(", {}", word(severity)));
        let workloads: Vec<String> = node.workloads.iter().map(|id| Id(*id).to_string()).collect();
        table.row([
            node.name.clone(),
            node.pool.clone(),
            format!("{}{severity}{express}", node.state),
            node.gpus.to_string(),
            node.gpus_used.to_string(),
            node.back_ms.filter(|_| node.state == "drained").or(node.drain_until_ms).map_or(String::new(), |until| clock(until, now_ms)),
            workloads.join(" "),
            node.reason.clone(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::NOON;

    #[test]
    fn a_node_that_drains_says_why() {
        let ready = Node {
            name: "gpu-1".into(),
            pool: "gpu".into(),
            state: "ready".into(),
            severity: None,
            reason: String::new(),
            drain_until_ms: None,
            back_ms: None,
            gpus: 8,
            gpus_used: 6,
            cpus: 0,
            memory_bytes: 0,
            block: "b".into(),
            features: Vec::new(),
            express: true,
            workloads: vec![3, 12],
        };
        let reason = "ann: fan 3 is loud".to_owned();
        let drains = Node {
            name: "gpu-2".into(),
            state: "draining".into(),
            severity: Some(Severity::Sick),
            reason,
            express: false,
            ..ready.clone()
        };
        let expected = "\
node   pool  state           GPUs  used  until  workloads  reason
─────────────────────────────────────────────────────────────────────────────
gpu-1  gpu   ready, express     8     6         w3 w12
gpu-2  gpu   draining, sick     8     6         w3 w12     ann: fan 3 is loud";
        assert_eq!(table(&[ready, drains], NOON).text(Some(78)), expected);
    }
}
