//! `[pool]`, `[[pools]]` and lists of nodes made into pools and their nodes.

use super::error::ScenarioError;
use super::file::{NodeGroupFile, PoolFile, ScenarioFile, UnitText};
use super::knobs::KnobsFile;
use super::node_list::{self, NodeRow};
use super::overrides::nearest;
use super::source::Source;
use super::{Pool, length::GangText};
use crate::trace::rules::Accepted;
use std::collections::BTreeMap;
use std::path::Path;
use stipend_core::id::{BlockId, PoolId};
use stipend_core::spec::{Features, Gang, NodeSpec, Pools};
use toml::Spanned;

/// More nodes than this are a slip of the pen.
const NODES_MAX: usize = 200_000;

/// Features are bits of one word.
const FEATURES_MAX: usize = 64;

/// All pools with all nodes, by number: pool after pool.
#[derive(Default)]
pub(super) struct Hardware {
    pub(super) pools: Vec<Pool>,
    pub(super) nodes: Vec<NodeSpec>,
    /// Names of nodes, as far as a list gives them.
    pub(super) names: Vec<String>,
    pub(super) features: Vec<String>,
    /// What lists and traces call the pools.
    models: Vec<String>,
}

/// What a file says about hardware, and the knobs that all its pools share.
pub(super) struct Written<'a> {
    pub(super) pool: &'a Option<Spanned<PoolFile>>,
    pub(super) pools: &'a [Spanned<PoolFile>],
    pub(super) node_list: &'a Option<Spanned<String>>,
    pub(super) policy: &'a KnobsFile,
}

impl<'a> From<&'a ScenarioFile> for Written<'a> {
    fn from(file: &'a ScenarioFile) -> Written<'a> {
        Written { pool: &file.pool, pools: &file.pools, node_list: &file.node_list, policy: &file.policy }
    }
}

/// A node before its pool is known to be counted in GPUs or CPUs.
struct Raw {
    name: String,
    gpus: u32,
    cpus: u32,
    memory: u64,
    block: u32,
    features: Features,
    express: bool,
}

/// A pool that is put together.
struct Draft<'a> {
    name: String,
    file: Option<&'a Spanned<PoolFile>>,
    nodes: Vec<Raw>,
}

impl Hardware {
    /// Everything that the file and its lists of nodes say.
    pub(super) fn build(source: &Source<'_>, file: &Written<'_>, folder: &Path) -> Result<Hardware, ScenarioError> {
        let mut hardware = Hardware::default();
        let mut drafts = Vec::new();
        if let (Some(pool), false) = (file.pool, file.pools.is_empty()) {
            let message = "there are [[pools]], too: write one [pool], or [[pools]] with names";
            return Err(source.error(pool.span(), message));
        }
        for pool in file.pool.iter().chain(file.pools) {
            drafts.push(hardware.written(source, pool, folder, file.pools.is_empty())?);
        }
        check_names(source, &drafts)?;
        if let Some(list) = file.node_list {
            for row in node_list::read(&source.path(list, folder))? {
                hardware.listed(&mut drafts, &row).map_err(|message| source.error(list.span(), message))?;
            }
        }
        for draft in drafts {
            hardware.finish(source, file, draft)?;
        }
        if hardware.pools.is_empty() {
            let message = "the scenario has no nodes: give it a [pool] with nodes = 16, or [[pool.groups]]".into();
            return Err(ScenarioError::File { file: source.file.into(), message });
        }
        Ok(hardware)
    }

    fn written<'a>(
        &mut self,
        source: &Source<'_>,
        pool: &'a Spanned<PoolFile>,
        folder: &Path,
        only: bool,
    ) -> Result<Draft<'a>, ScenarioError> {
        let file = pool.get_ref();
        let name = match &file.name {
            Some(name) => name.get_ref().clone(),
            None if only => PoolId(0).to_string(),
            None => return Err(source.error(pool.span(), "a pool of [[pools]] needs a name = \"h100\"")),
        };
        let mut nodes = self.equal_nodes(source, file)?;
        for group in &file.groups {
            check_gpus(source, file, group.gpus.as_ref(), "gpus", pool)?;
            let features = self.features(&file.features, &group.features).map_err(|message| source.error(pool.span(), message))?;
            nodes.extend((0..group.nodes.min(NODES_MAX as u32 + 1)).map(|_| group_node(group, features)));
        }
        let mut draft = Draft { name, file: Some(pool), nodes };
        if let Some(list) = &file.file {
            let rows = node_list::read(&source.path(list, folder))?;
            let wanted = file.model.as_ref().unwrap_or(&draft.name).clone();
            let mine = |row: &&NodeRow| only && file.model.is_none() || row.pool.as_ref().is_none_or(|pool| *pool == wanted);
            for row in rows.iter().filter(mine) {
                self.add_row(&mut draft, row).map_err(|message| source.error(list.span(), message))?;
            }
        }
        Ok(draft)
    }

    fn equal_nodes(&mut self, source: &Source<'_>, file: &PoolFile) -> Result<Vec<Raw>, ScenarioError> {
        let per_block = *file.nodes_per_block.get_ref();
        if per_block == 0 {
            return Err(source.error(file.nodes_per_block.span(), "nodes_per_block = 0: a block has at least 1 node"));
        }
        let gpus = *file.gpus_per_node.get_ref();
        if !(1..=64).contains(&gpus) {
            return Err(source.error(file.gpus_per_node.span(), format!("gpus_per_node = {gpus}: a node has 1 to 64 GPUs")));
        }
        let express = file.express_nodes.as_ref().map_or(0, |express| *express.get_ref());
        if let Some(express) = file.express_nodes.as_ref().filter(|express| *express.get_ref() > file.nodes) {
            let message = format!("express_nodes = {}: the pool has only {} nodes", express.get_ref(), file.nodes);
            return Err(source.error(express.span(), message));
        }
        let nodes = file.nodes.min(NODES_MAX as u32 + 1);
        let features = self.features(&file.features, &[]).map_err(|message| source.error(file.nodes_per_block.span(), message))?;
        Ok((0..nodes)
            .map(|number| Raw {
                name: String::new(),
                gpus: if file.unit == UnitText::Cpu { 0 } else { gpus },
                cpus: file.cpus,
                memory: file.memory_gib << 30,
                block: number / per_block,
                features,
                express: number >= file.nodes - express,
            })
            .collect())
    }

    /// A row of the scenario's list goes to its pool, which it makes if need be.
    fn listed(&mut self, drafts: &mut Vec<Draft<'_>>, row: &NodeRow) -> Result<(), String> {
        let name = match &row.pool {
            Some(pool) => pool.clone(),
            None if row.gpus == 0 => "cpu".into(),
            None => drafts.first().map_or_else(|| PoolId(0).to_string(), |draft| draft.name.clone()),
        };
        let of_model = |draft: &Draft<'_>| draft.file.and_then(|file| file.get_ref().model.as_ref()).unwrap_or(&draft.name) == &name;
        let place = drafts.iter().position(of_model).unwrap_or_else(|| {
            drafts.push(Draft { name, file: None, nodes: Vec::new() });
            drafts.len() - 1
        });
        self.add_row(&mut drafts[place], row)
    }

    fn add_row(&mut self, draft: &mut Draft<'_>, row: &NodeRow) -> Result<(), String> {
        let file = draft.file.map(Spanned::get_ref);
        let written: &[String] = file.map_or(&[], |file| &file.features);
        let features = self.features(written, &row.features)?;
        let per_block = file.map_or(16, |file| *file.nodes_per_block.get_ref()).max(1);
        for number in 0..row.count {
            if draft.nodes.len() > NODES_MAX {
                return Err(format!("there are more than the {NODES_MAX} nodes that are possible"));
            }
            let name = if row.count > 1 && !row.name.is_empty() { format!("{}-{number}", row.name) } else { row.name.clone() };
            let block = row.block.as_ref().map_or(draft.nodes.len() as u32 / per_block, |block| block_number(block));
            let NodeRow { gpus, cpus, memory, express, .. } = *row;
            draft.nodes.push(Raw { name, gpus, cpus, memory, block, features, express });
        }
        Ok(())
    }

    /// A draft becomes a pool, counted in GPUs or CPUs.
    fn finish(&mut self, source: &Source<'_>, file: &Written<'_>, draft: Draft<'_>) -> Result<(), ScenarioError> {
        let span = draft.file.map_or(0..0, Spanned::span);
        let written = draft.file.map(Spanned::get_ref);
        if draft.nodes.is_empty() {
            let message = "nodes = 0: the scenario has no nodes; give it nodes = 16, or [[pool.groups]]";
            return Err(source.error(span, if file.pools.is_empty() { message.into() } else { format!("pool {}: {message}", draft.name) }));
        }
        if draft.nodes.len() + self.nodes.len() > NODES_MAX {
            let count = draft.nodes.len() + self.nodes.len();
            return Err(source.error(span, format!("nodes: {count} nodes are more than the {NODES_MAX} that are possible")));
        }
        let of_cpus = written.map_or(draft.nodes.iter().all(|node| node.gpus == 0), |written| written.unit == UnitText::Cpu);
        if let Some(node) = draft.nodes.iter().find(|node| if of_cpus { node.cpus == 0 } else { node.gpus == 0 }) {
            let what = if of_cpus { "cpus = 96, for it is counted in CPUs" } else { "GPUs; a pool without them has unit = \"cpu\"" };
            return Err(source.error(span, format!("pool {}: {}every node of it needs {what}", draft.name, named(&node.name))));
        }
        // Nodes are kept in words of 64 bits: where one has more CPUs, the fewest that make it fit are counted as one.
        let most = draft.nodes.iter().map(|node| node.cpus).max().unwrap_or(0);
        let cpus_per_gpu = of_cpus.then(|| most.div_ceil(64));
        let knobs = written.map_or_else(|| file.policy.knobs(), |written| written.policy.over(file.policy.knobs()));
        let pool = PoolId(self.pools.len() as u16);
        self.models.push(written.and_then(|written| written.model.clone()).unwrap_or_else(|| draft.name.clone()));
        self.pools.push(Pool { name: draft.name, knobs, cpus_per_gpu });
        for node in draft.nodes {
            let gpus = cpus_per_gpu.map_or(node.gpus, |cpus| node.cpus / cpus);
            let cpus = if of_cpus { 0 } else { node.cpus };
            let Raw { name, memory, block, features, express, .. } = node;
            self.nodes.push(NodeSpec { pool, gpus, cpus, memory, block: BlockId(block), features, express });
            self.names.push(name);
        }
        Ok(())
    }

    /// Features by name: each has a bit, given at its first mention.
    pub(super) fn features(&mut self, some: &[String], more: &[String]) -> Result<Features, String> {
        let mut bits = 0;
        for name in some.iter().chain(more) {
            let bit = self.features.iter().position(|known| known == name).unwrap_or_else(|| {
                self.features.push(name.clone());
                self.features.len() - 1
            });
            if bit >= FEATURES_MAX {
                return Err(format!("features: there are more than {FEATURES_MAX} different ones"));
            }
            bits |= 1 << bit;
        }
        Ok(Features(bits))
    }

    /// Features that some node has.
    pub(super) fn known_features(&self, names: &[String]) -> Result<Features, String> {
        let mut bits = 0;
        for name in names {
            let Some(bit) = self.features.iter().position(|known| known == name) else {
                let known: Vec<&str> = self.features.iter().map(String::as_str).collect();
                let near = nearest(name, &known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(format!("features: no node has `{name}`{near}"));
            };
            bits |= 1 << bit;
        }
        Ok(Features(bits))
    }

    /// The pools of these names in their order; without any, all that are counted in GPUs, or all if none is.
    pub(super) fn order(&self, names: Option<&[String]>) -> Result<Pools, String> {
        let of_gpus = |pool: &Pool| pool.cpus_per_gpu.is_none();
        let all_cpus = !self.pools.iter().any(of_gpus);
        let mut order: Vec<PoolId> = Vec::new();
        match names {
            None => order.extend((0..).zip(&self.pools).filter(|(_, pool)| all_cpus || of_gpus(pool)).map(|(id, _)| PoolId(id))),
            Some(names) => {
                for name in names {
                    order.push(self.find(name)?);
                }
            }
        }
        let unit = |pool: &PoolId| self.pools[pool.index()].cpus_per_gpu;
        if let Some(other) = order.iter().find(|pool| unit(pool) != unit(&order[0])) {
            let (one, other) = (&self.pools[order[0].index()].name, &self.pools[other.index()].name);
            return Err(format!("pools: {one} and {other} are not counted in the same; a gang is so many GPUs or so many CPUs"));
        }
        if let Some(twice) = order.iter().enumerate().find(|(n, pool)| order[..*n].contains(pool)) {
            return Err(format!("pools: {} is there twice", self.pools[twice.1.index()].name));
        }
        Pools::from_order(&order).ok_or_else(|| "pools: name at least one pool".into())
    }

    /// A pool by its name.
    pub(super) fn find(&self, name: &str) -> Result<PoolId, String> {
        if let Some(place) = self.pools.iter().position(|pool| pool.name == name) {
            return Ok(PoolId(place as u16));
        }
        let known: Vec<&str> = self.pools.iter().map(|pool| pool.name.as_str()).collect();
        Err(match nearest(name, &known) {
            Some(near) => format!("there is no pool `{name}`; did you mean `{near}`?"),
            None => format!("there is no pool `{name}`; there are {}", known.join(", ")),
        })
    }

    /// The pool of a kind of GPU, by its name or model as a trace writes it, in capitals or not.
    pub(super) fn find_kind(&self, kind: &str) -> Option<PoolId> {
        let is_called =
            |place: &usize| self.pools[*place].name.eq_ignore_ascii_case(kind) || self.models[*place].eq_ignore_ascii_case(kind);
        (0..self.pools.len()).find(is_called).map(|place| PoolId(place as u16))
    }

    /// The pools that are counted in CPUs, in their order, as far as they count alike.
    pub(super) fn cpu_pools(&self) -> Option<Pools> {
        let unit = self.pools.iter().find_map(|pool| pool.cpus_per_gpu)?;
        let alike = (0..).zip(&self.pools).filter(|(_, pool)| pool.cpus_per_gpu == Some(unit)).map(|(id, _)| PoolId(id));
        Pools::from_order(&alike.collect::<Vec<_>>())
    }

    /// How rows of a trace that accept these pools are cut into members.
    pub(super) fn accepted(&self, pools: &Pools) -> Accepted {
        let per_unit = self.pools[pools.first.index()].cpus_per_gpu.unwrap_or(1);
        let widest = self.nodes.iter().filter(|node| pools.iter().any(|pool| pool == node.pool)).map(|node| node.gpus).max();
        Accepted { pools: pools.clone(), per_node: widest.unwrap_or(8) * per_unit, per_unit }
    }

    /// A gang as it is written, in what the pools are counted in.
    pub(super) fn gang(&self, pools: &Pools, written: &GangText) -> Gang {
        let each = self.pools[pools.first.index()].cpus_per_gpu.unwrap_or(1);
        Gang::new(written.members, written.gpus_per_member.div_ceil(each))
    }
}

fn named(node: &str) -> String {
    if node.is_empty() { String::new() } else { format!("{node}: ") }
}

/// Blocks are compared, never shown by name: equal names give equal numbers.
fn block_number(name: &str) -> u32 {
    if let Ok(number) = name.parse() {
        return number;
    }
    name.bytes().fold(2_166_136_261u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619)) | 1 << 31
}

fn check_names(source: &Source<'_>, drafts: &[Draft<'_>]) -> Result<(), ScenarioError> {
    let mut seen = BTreeMap::new();
    for draft in drafts {
        if seen.insert(&draft.name, ()).is_some() {
            let span = draft.file.map_or(0..0, Spanned::span);
            return Err(source.error(span, format!("name = \"{}\": there are two pools of this name", draft.name)));
        }
    }
    Ok(())
}

fn group_node(group: &NodeGroupFile, features: Features) -> Raw {
    Raw {
        name: String::new(),
        gpus: group.gpus.as_ref().map_or(0, |gpus| *gpus.get_ref()),
        cpus: group.cpus,
        memory: group.memory_gib << 30,
        block: group.block,
        features,
        express: group.express,
    }
}

fn check_gpus(
    source: &Source<'_>,
    file: &PoolFile,
    gpus: Option<&Spanned<u32>>,
    field: &str,
    pool: &Spanned<PoolFile>,
) -> Result<(), ScenarioError> {
    match gpus {
        Some(gpus) if !(1..=64).contains(gpus.get_ref()) => {
            Err(source.error(gpus.span(), format!("{field} = {}: a node has 1 to 64 GPUs", gpus.get_ref())))
        }
        None if file.unit == UnitText::Gpu => {
            Err(source.error(pool.span(), format!("a group of nodes needs {field} = 8: GPUs of each, 1 to 64")))
        }
        _ => Ok(()),
    }
}
