//! A scenario file, field by field as it is written. What the fields mean together is settled in `resolve`.

use super::file_work::{HappeningFile, WorkloadFile};
use super::knobs::KnobsFile;
use super::length::{Fraction, Length};
use super::per_pool::PerPool;
use super::rivals::RivalsFile;
use crate::generate::behaviour::BehaviourFile;
use crate::generate::lab_file::LabFile;
use crate::generate::stream::StreamFile;
use crate::trace::rules::TraceFile;
use serde::Deserialize;
use stipend_core::spec::LeafOrder;
use toml::Spanned;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScenarioFile {
    /// A short name, usually the file's own.
    pub(crate) name: String,
    /// What it shows, in a sentence or two.
    pub(crate) description: String,
    /// The seed used where none is asked for. Default 1.
    #[serde(default = "one")]
    pub(crate) seed: u64,
    /// How long the run goes before anything is measured. Default none.
    #[serde(default)]
    pub(crate) warmup: Length,
    /// How long is measured; submissions stop at its end.
    pub(crate) measure: Spanned<Length>,
    /// Whether the run goes on after `measure`, without new submissions, until everything has ended. Default false.
    #[serde(default)]
    pub(crate) drain: bool,
    /// The nodes, where there is one pool.
    pub(crate) pool: Option<Spanned<PoolFile>>,
    /// The pools, where there are several.
    #[serde(default)]
    pub(crate) pools: Vec<Spanned<PoolFile>>,
    /// A list of nodes (CSV), each with its pool or model; pools that are not written are made from it.
    pub(crate) node_list: Option<Spanned<String>>,
    /// The policy's knobs; what is left out has its default.
    #[serde(default)]
    pub(crate) policy: KnobsFile,
    /// How the other policies are set up; what is left out has its default.
    #[serde(default)]
    pub(crate) rivals: RivalsFile,
    /// The budget tree, parents named before or after their children.
    #[serde(default)]
    pub(crate) budgets: Vec<BudgetFile>,
    /// How the simulated machines and programs behave.
    #[serde(default)]
    pub(crate) model: ModelFile,
    /// How often hosts fail.
    pub(crate) failures: Option<FailuresFile>,
    /// A lab: users and teams who keep submitting (closed loop).
    pub(crate) lab: Option<Spanned<LabFile>>,
    /// Streams of similar workloads.
    #[serde(default)]
    pub(crate) streams: Vec<Spanned<StreamFile>>,
    /// Who of a lab or of streams uses the rules otherwise than honestly; of several that are about somebody the first counts.
    #[serde(default)]
    pub(crate) behaviours: Vec<Spanned<BehaviourFile>>,
    /// Workloads from a file.
    pub(crate) trace: Option<Spanned<TraceFile>>,
    /// Workloads one by one.
    #[serde(default)]
    pub(crate) workloads: Vec<Spanned<WorkloadFile>>,
    /// What else happens, one by one.
    #[serde(default)]
    pub(crate) happenings: Vec<Spanned<HappeningFile>>,
}

fn one() -> u64 {
    1
}

/// `[pool]` or one of `[[pools]]`: equal nodes (`nodes`, …), groups of them, or a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PoolFile {
    /// What it is called. A pool of `[[pools]]` needs a name.
    pub(crate) name: Option<Spanned<String>>,
    /// What its nodes are counted in: `gpu` (default), or `cpu` where they have no GPUs.
    #[serde(default)]
    pub(crate) unit: UnitText,
    /// How many equal nodes.
    #[serde(default)]
    pub(crate) nodes: u32,
    /// GPUs of each, 1 to 64. Default 8.
    #[serde(default = "eight")]
    pub(crate) gpus_per_node: Spanned<u32>,
    /// How many nodes stand in one block. Default 16.
    #[serde(default = "sixteen")]
    pub(crate) nodes_per_block: Spanned<u32>,
    /// How many of the nodes, the last ones, are set aside as express nodes. Default none.
    pub(crate) express_nodes: Option<Spanned<u32>>,
    /// CPUs of each node. Default 0: CPUs are not counted.
    #[serde(default)]
    pub(crate) cpus: u32,
    /// Memory of each node in GiB. Default 0: memory is not counted.
    #[serde(default)]
    pub(crate) memory_gib: u64,
    /// What each of its nodes has, such as `nvlink`; workloads may require it.
    #[serde(default)]
    pub(crate) features: Vec<String>,
    /// Further nodes that differ.
    #[serde(default)]
    pub(crate) groups: Vec<NodeGroupFile>,
    /// Further nodes from a list (CSV): the rows whose pool or model is this pool's name, or `model`; all rows where there is one pool.
    pub(crate) file: Option<Spanned<String>>,
    /// What the list calls this pool. Default: its name.
    pub(crate) model: Option<String>,
    /// Its own knobs, over those of `[policy]`.
    #[serde(default)]
    pub(crate) policy: KnobsFile,
}

/// `unit` of a pool.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum UnitText {
    #[default]
    Gpu,
    Cpu,
}

fn eight() -> Spanned<u32> {
    Spanned::new(0..0, 8)
}

fn sixteen() -> Spanned<u32> {
    Spanned::new(0..0, 16)
}

/// `[[pool.groups]]`: nodes that are alike.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeGroupFile {
    /// How many.
    pub(crate) nodes: u32,
    /// GPUs of each, 1 to 64; not of nodes that are counted in CPUs.
    pub(crate) gpus: Option<Spanned<u32>>,
    /// The block they stand in.
    #[serde(default)]
    pub(crate) block: u32,
    /// Whether they are express nodes. Default false.
    #[serde(default)]
    pub(crate) express: bool,
    /// CPUs of each. Default 0: not counted.
    #[serde(default)]
    pub(crate) cpus: u32,
    /// Memory of each in GiB. Default 0: not counted.
    #[serde(default)]
    pub(crate) memory_gib: u64,
    /// What each of them has beside what all nodes of the pool have.
    #[serde(default)]
    pub(crate) features: Vec<String>,
}

/// `[[budgets]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BudgetFile {
    /// Its full path, such as `lab/nlp/olmo`.
    pub(crate) path: Spanned<String>,
    /// Its part of its parent in percent, up to four decimals, in every pool or by the pool's name. The root may leave it out.
    pub(crate) share: Option<Spanned<PerPool<f64>>>,
    /// The most GPUs its allocated work may hold at once.
    pub(crate) gpus_max: Option<Spanned<PerPool<u32>>>,
    /// The most GPUs its unallocated work may hold at once.
    pub(crate) unallocated_gpus_max: Option<Spanned<PerPool<u32>>>,
    /// The longest contract that may start here.
    pub(crate) min_runtime_max: Option<Spanned<PerPool<Length>>>,
    /// The order of its work, if it is a leaf: `priority` (default), `fifo`, `shortest-contract` or `completion`.
    #[serde(default)]
    pub(crate) order: OrderText,
}

/// `order` of a budget.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OrderText {
    #[default]
    Priority,
    Fifo,
    ShortestContract,
    Completion,
}

impl From<OrderText> for LeafOrder {
    fn from(order: OrderText) -> LeafOrder {
        match order {
            OrderText::Priority => LeafOrder::Priority,
            OrderText::Fifo => LeafOrder::Fifo,
            OrderText::ShortestContract => LeafOrder::ShortestContract,
            OrderText::Completion => LeafOrder::Completion,
        }
    }
}

/// `[model]`: what the scheduler is not told.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelFile {
    /// What every lease of `resume` work after its first pays before it makes progress. Default: the knob `restart_cost`.
    pub(crate) restart_cost: Option<Length>,
    /// How long after the stop signal a process leaves, at most the grace. Default: the whole grace.
    pub(crate) exit_after: Option<Length>,
    /// From the assignment of GPUs until all members run. Default 0.
    #[serde(default)]
    pub(crate) start_delay: Length,
    /// How long after a node was lost its leases are fenced, so that they certainly no longer run. Default 2 minutes.
    #[serde(default = "two_minutes")]
    pub(crate) fence_after: Length,
}

fn two_minutes() -> Length {
    Length(stipend_core::quantity::Span::minutes(2))
}

impl Default for ModelFile {
    fn default() -> ModelFile {
        ModelFile { restart_cost: None, exit_after: None, start_delay: Length::default(), fence_after: two_minutes() }
    }
}

/// `[failures]`: hosts that fail, and how.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailuresFile {
    /// Mean time between the failures of one host, exponentially distributed.
    pub(crate) host_mtbf: Spanned<Length>,
    /// How long a repair takes in the median (log-normal, spread 0.8), from the moment the host is empty or lost.
    pub(crate) repair: Length,
    /// Weight of hosts that go without a word.
    #[serde(default)]
    pub(crate) lost: Fraction,
    /// Weight of hosts that must stop at once.
    #[serde(default)]
    pub(crate) critical: Fraction,
    /// Weight of hosts that take nothing new but may finish their contracts.
    #[serde(default)]
    pub(crate) sick: Fraction,
    /// Weight of planned maintenance.
    #[serde(default)]
    pub(crate) maintenance: Fraction,
}
