//! The live state handed out for a what-if.

use super::input::Answer;
use super::{Service, Who};
use crate::store::Kind;
use crate::whatif::Fork;
use crate::wire::budget::Changeset;
use crate::wire::error::{Code, Problem};
use crate::wire::whatif::WhatIfRequest;
use stipend_core::id::{BlockId, PoolId};
use stipend_core::spec::{Features, NodeSpec};

/// So many days are replayed at most.
const DAYS_MAX: u32 = 90;

impl Service {
    /// Everything that a what-if needs, with its change found to be right. Whoever may look may ask.
    pub(crate) fn fork(&self, who: &Who, request: WhatIfRequest) -> Answer<Fork> {
        let days = request.days.unwrap_or(30);
        if !(1..=DAYS_MAX).contains(&days) {
            return Err(Problem::new(Code::Invalid, format!("days = {days}: expected 1 to {DAYS_MAX}")));
        }
        let tree = self.scheduler.tree();
        let changeset = Changeset {
            id: 0,
            version: None,
            author: who.user.clone(),
            reason: request.reason,
            made_ms: self.now.0,
            effective_ms: self.now.0,
            withdrawn: false,
            budgets: request.budgets,
            difference: Vec::new(),
        };
        let resolved = self.resolve(tree, &changeset)?;
        let changed = tree.changed(&resolved.change, self.directory.names(Kind::Pool).len());
        changed.map_err(|rejection| Problem::new(Code::Invalid, self.sentence(&rejection)))?;
        Ok(Fork {
            scheduler: self.scheduler.clone(),
            change: resolved.change,
            difference: resolved.difference,
            live: self.live.iter().map(|live| live.view.clone()).collect(),
            directory: self.directory.clone(),
            nodes: self.nodes.iter().filter_map(|(_, node)| self.spec_of(node)).collect(),
            days,
        })
    }

    fn spec_of(&self, node: &crate::wire::node::Node) -> Option<NodeSpec> {
        Some(NodeSpec {
            pool: PoolId(self.directory.find(Kind::Pool, &node.pool)? as u16),
            gpus: node.gpus,
            cpus: node.cpus,
            memory: node.memory_bytes,
            block: BlockId(self.directory.find(Kind::Block, &node.block)?),
            features: self.directory.features(&node.features).unwrap_or(Features(0)),
            express: node.express,
        })
    }
}
