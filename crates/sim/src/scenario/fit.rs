//! Whether a gang could ever run on an empty pool.

use stipend_core::id::PoolId;
use stipend_core::spec::{Gang, NodeSpec, Pools};

/// What is wrong with a gang that fits none of these pools: what the first of them says.
pub(crate) fn never_fits_any(gang: &Gang, pools: &Pools, nodes: &[NodeSpec]) -> Option<String> {
    let in_pool = |pool: PoolId| {
        let own: Vec<NodeSpec> = nodes.iter().filter(|node| node.pool == pool).cloned().collect();
        never_fits(gang, &own)
    };
    let reasons: Option<Vec<String>> = pools.iter().map(in_pool).collect();
    reasons.and_then(|reasons| reasons.into_iter().next())
}

/// The most members of this gang's kind that the empty pool could hold.
pub(crate) fn members_max(gang: &Gang, nodes: &[NodeSpec]) -> u32 {
    // Only small gangs may use express nodes at all; the others are measured against the rest.
    let express_too = gang.members == 1;
    let on = |node: &NodeSpec| if node.express && !express_too { 0 } else { members_on(gang, node) };
    if !gang.same_block {
        return nodes.iter().map(on).sum();
    }
    let mut by_block = std::collections::BTreeMap::new();
    for node in nodes {
        *by_block.entry(node.block).or_insert(0) += on(node);
    }
    by_block.into_values().max().unwrap_or(0)
}

/// What is wrong with a gang that never fits, and the largest that would.
pub(crate) fn never_fits(gang: &Gang, nodes: &[NodeSpec]) -> Option<String> {
    let most = members_max(gang, nodes);
    if gang.members <= most {
        return None;
    }
    let asked = format!("{}x{}", gang.members, gang.gpus_per_member);
    if most > 0 {
        let largest = format!("{most}x{}", gang.gpus_per_member);
        return Some(format!(
            "a gang of {asked} can never fit this pool; the largest of {} GPUs a member is {largest}",
            gang.gpus_per_member
        ));
    }
    let widest = nodes.iter().map(|node| node.gpus).max().unwrap_or(0);
    let also = if gang.cpus_per_member > 0 || gang.memory_per_member > 0 { ", its CPUs and memory" } else { "" };
    let also = if gang.features.0 > 0 { format!("{also} and the features that it needs") } else { also.into() };
    Some(format!("a gang of {asked} can never fit this pool: no node has room for one member{also}; the largest node has {widest} GPUs"))
}

fn members_on(gang: &Gang, node: &NodeSpec) -> u32 {
    if node.features.0 & gang.features.0 != gang.features.0 {
        return 0;
    }
    let by_cpus = if gang.cpus_per_member == 0 || node.cpus == 0 { u32::MAX } else { node.cpus / gang.cpus_per_member };
    let by_memory = if gang.memory_per_member == 0 || node.memory == 0 { u64::MAX } else { node.memory / gang.memory_per_member };
    (node.gpus / gang.gpus_per_member).min(by_cpus).min(u32::try_from(by_memory).unwrap_or(u32::MAX))
}
