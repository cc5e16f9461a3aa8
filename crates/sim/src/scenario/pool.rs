//! `[pool]` made into nodes.

use super::error::ScenarioError;
use super::file::{NodeGroupFile, PoolFile};
use super::source::Source;
use stipend_core::id::{BlockId, PoolId};
use stipend_core::spec::{Features, NodeSpec};
use toml::Spanned;

/// More nodes than this are a slip of the pen.
const NODES_MAX: usize = 200_000;

/// All nodes, by number.
pub(super) fn nodes(source: &Source<'_>, pool: Option<&Spanned<PoolFile>>) -> Result<Vec<NodeSpec>, ScenarioError> {
    let none = || ScenarioError::File {
        file: source.file.into(),
        message: "the scenario has no nodes: give it a [pool] with nodes = 16, or [[pool.groups]]".into(),
    };
    let Some(pool) = pool else { return Err(none()) };
    let file = pool.get_ref();
    let mut nodes = equal_nodes(source, file)?;
    for group in &file.groups {
        check_gpus(source, &group.gpus, "gpus")?;
        nodes.extend((0..group.nodes).map(|_| group_node(group)));
    }
    if nodes.is_empty() {
        return Err(source.error(pool.span(), "nodes = 0: the scenario has no nodes; give it nodes = 16, or [[pool.groups]]"));
    }
    if nodes.len() > NODES_MAX {
        return Err(source.error(pool.span(), format!("nodes: {} nodes are more than the {NODES_MAX} that are possible", nodes.len())));
    }
    Ok(nodes)
}

fn equal_nodes(source: &Source<'_>, file: &PoolFile) -> Result<Vec<NodeSpec>, ScenarioError> {
    check_gpus(source, &file.gpus_per_node, "gpus_per_node")?;
    let per_block = *file.nodes_per_block.get_ref();
    if per_block == 0 {
        return Err(source.error(file.nodes_per_block.span(), "nodes_per_block = 0: a block has at least 1 node"));
    }
    let express = file.express_nodes.as_ref().map_or(0, |express| *express.get_ref());
    if let Some(express) = file.express_nodes.as_ref().filter(|express| *express.get_ref() > file.nodes) {
        let message = format!("express_nodes = {}: the pool has only {} nodes", express.get_ref(), file.nodes);
        return Err(source.error(express.span(), message));
    }
    let nodes = file.nodes.min(NODES_MAX as u32 + 1);
    Ok((0..nodes)
        .map(|number| NodeSpec {
            pool: PoolId(0),
            gpus: *file.gpus_per_node.get_ref(),
            cpus: file.cpus,
            memory: file.memory_gib << 30,
            block: BlockId(number / per_block),
            features: Features(0),
            express: number >= file.nodes - express,
        })
        .collect())
}

fn group_node(group: &NodeGroupFile) -> NodeSpec {
    NodeSpec {
        pool: PoolId(0),
        gpus: *group.gpus.get_ref(),
        cpus: group.cpus,
        memory: group.memory_gib << 30,
        block: BlockId(group.block),
        features: Features(0),
        express: group.express,
    }
}

fn check_gpus(source: &Source<'_>, gpus: &Spanned<u32>, field: &str) -> Result<(), ScenarioError> {
    let value = *gpus.get_ref();
    if (1..=64).contains(&value) {
        return Ok(());
    }
    Err(source.error(gpus.span(), format!("{field} = {value}: a node has 1 to 64 GPUs")))
}
