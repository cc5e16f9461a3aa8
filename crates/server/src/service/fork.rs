//! The live state handed out for a what-if.

use super::input::Answer;
use super::{Service, Who};
use crate::store::Kind;
use crate::whatif::Fork;
use crate::wire::budget::Changeset;
use crate::wire::error::{Code, Problem};
use crate::wire::whatif::{PoolKnobs, WhatIfRequest};
use stipend_core::event::Event;
use stipend_core::id::{BlockId, PoolId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::Span;
use stipend_core::spec::{Features, NodeSpec};
use stipend_sim::log::knobs::Policy;
use stipend_sim::scenario::knobs_over;

/// Knobs as they are written, by name.
type Written = serde_json::Map<String, serde_json::Value>;

/// What of the knobs differs, as the event log writes them.
fn differences(pool: &str, before: &Knobs, after: &Knobs) -> Vec<String> {
    let fields = |knobs: &Knobs| serde_json::to_value(Policy::new(pool.to_owned(), knobs)).expect("knobs are plain data");
    let (before, after) = (fields(before), fields(after));
    let differs = |(name, value): (&String, &serde_json::Value)| {
        let was = before.get(name).filter(|was| *was != value)?;
        Some(format!("{pool}: {}: {} -> {}", knob(name), said(name, was), said(name, value)))
    };
    after.as_object().into_iter().flatten().filter_map(differs).collect()
}

/// A knob's name without its unit.
fn knob(field: &str) -> &str {
    field.strip_suffix("_ms").or_else(|| field.strip_suffix("_ppm")).unwrap_or(field)
}

fn said(field: &str, value: &serde_json::Value) -> String {
    match value.as_i64() {
        Some(ms) if field.ends_with("_ms") => Span(ms).to_string(),
        Some(ppm) if field.ends_with("_ppm") => (ppm as f64 / 1e6).to_string(),
        _ => value.to_string().trim_matches('"').to_owned(),
    }
}

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
        let mut resolved = self.resolve(tree, &changeset)?;
        let changed = tree.changed(&resolved.change, self.directory.names(Kind::Pool).len());
        changed.map_err(|rejection| Problem::new(Code::Invalid, self.sentence(&rejection)))?;
        let (knobs, more) = self.other_knobs(&request.policy, &request.pools)?;
        resolved.difference.extend(more);
        Ok(Fork {
            scheduler: self.scheduler.clone(),
            change: resolved.change,
            knobs,
            difference: resolved.difference,
            live: self.live.iter().map(|live| live.view.clone()).collect(),
            directory: self.directory.clone(),
            nodes: self.nodes.iter().filter_map(|(_, node)| self.spec_of(node)).collect(),
            days,
        })
    }

    /// The pools whose knobs would be others, and what that changes, a line each.
    fn other_knobs(&self, all: &Written, pools: &[PoolKnobs]) -> Answer<(Vec<(PoolId, Knobs)>, Vec<String>)> {
        for named in pools {
            self.directory.pool(&named.name)?;
        }
        let (mut others, mut difference) = (Vec::new(), Vec::new());
        for (number, name) in self.directory.names(Kind::Pool).iter().enumerate() {
            let pool = PoolId(number as u16);
            let now = self.scheduler.knobs(pool).cloned().unwrap_or_default();
            let own = pools.iter().filter(|own| own.name == *name).map(|own| &own.policy);
            let other = std::iter::once(all).chain(own).try_fold(now.clone(), |knobs, written| knobs_over(written, knobs));
            let other = other.map_err(|message| Problem::new(Code::Invalid, format!("policy: {message}")))?;
            if other == now {
                continue;
            }
            // Tried on a copy: the core knows what may be.
            let set = Event::KnobsSet { pool, knobs: Box::new(other.clone()) };
            let tried = self.scheduler.clone().apply(self.now, &set, &mut Vec::new());
            tried.map_err(|rejection| Problem::new(Code::Invalid, self.sentence(&rejection)))?;
            difference.extend(differences(name, &now, &other));
            others.push((pool, other));
        }
        Ok((others, difference))
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
