//! `[[budgets]]` made into a tree.

use super::error::ScenarioError;
use super::file::BudgetFile;
use super::overrides::nearest;
use super::per_pool::PerPool;
use super::pool::Hardware;
use super::source::Source;
use std::collections::BTreeMap;
use std::ops::Range;
use stipend_core::id::{BudgetId, PoolId};
use stipend_core::quantity::{Gpus, Ppm, Span};
use stipend_core::spec::{BudgetSpec, PoolShare};
use toml::Spanned;

/// The tree as it is put together: parents before children.
#[derive(Default)]
pub(super) struct Tree {
    /// By number.
    pub(super) specs: Vec<BudgetSpec>,
    /// Their full paths.
    pub(super) paths: Vec<String>,
    by_path: BTreeMap<String, BudgetId>,
    /// The pools' names.
    pools: Vec<String>,
}

impl Tree {
    /// The tree of a scenario.
    pub(super) fn build(source: &Source<'_>, files: &[BudgetFile], hardware: &Hardware) -> Result<Tree, ScenarioError> {
        let mut tree = Tree { pools: hardware.pools.iter().map(|pool| pool.name.clone()).collect(), ..Tree::default() };
        let mut by_depth: Vec<&BudgetFile> = files.iter().collect();
        by_depth.sort_by_key(|file| file.path.get_ref().matches('/').count());
        for file in by_depth {
            tree.add_file(source, file, hardware)?;
        }
        tree.check_sums(source, files)?;
        Ok(tree)
    }

    /// Adds a budget below `path`'s parent, which must exist (a root needs none).
    pub(super) fn add(&mut self, path: &str, pools: Vec<PoolShare>, order: stipend_core::spec::LeafOrder) -> Result<BudgetId, String> {
        let (parent, name) = match path.rsplit_once('/') {
            Some((parent, name)) => (Some(self.parent(path, parent)?), name),
            None if self.specs.is_empty() => (None, path),
            None => {
                return Err(format!(
                    "path = \"{path}\": there is a root already, `{}`; write the path below it, `{}/{path}`",
                    self.paths[0], self.paths[0]
                ));
            }
        };
        if name.is_empty() || path.starts_with('/') {
            return Err(format!("path = \"{path}\": every part of a path has a name, such as lab/nlp/olmo"));
        }
        if self.by_path.contains_key(path) {
            return Err(format!("path = \"{path}\": there are two budgets of this path"));
        }
        let id = BudgetId(self.specs.len() as u32);
        self.specs.push(BudgetSpec { id, parent, name: name.into(), pools, order, closed: false });
        self.paths.push(path.into());
        self.by_path.insert(path.into(), id);
        Ok(id)
    }

    fn parent(&self, path: &str, parent: &str) -> Result<BudgetId, String> {
        let found = self.by_path.get(parent).copied();
        found.ok_or_else(|| format!("path = \"{path}\": its parent `{parent}` does not exist; add [[budgets]] with path = \"{parent}\""))
    }

    fn add_file(&mut self, source: &Source<'_>, file: &BudgetFile, hardware: &Hardware) -> Result<(), ScenarioError> {
        let path = file.path.get_ref();
        if file.share.is_none() && path.contains('/') {
            return Err(
                source.error(file.path.span(), format!("path = \"{path}\": it has no share; add share = 25 (percent of its parent)"))
            );
        }
        check_pools(source, file.share.as_ref(), hardware)?;
        check_pools(source, file.gpus_max.as_ref(), hardware)?;
        check_pools(source, file.unallocated_gpus_max.as_ref(), hardware)?;
        check_pools(source, file.min_runtime_max.as_ref(), hardware)?;
        let mut pools = Vec::new();
        for pool in &hardware.pools {
            let share = match &file.share {
                // The root has everything unless it says otherwise; others have nothing in a pool that they do not name.
                None => Ppm::ONE,
                Some(share) => {
                    let written = share.get_ref().of(&pool.name).copied().unwrap_or_default();
                    percent(written).map_err(|message| source.error(share.span(), message))?
                }
            };
            // A cap is written in what the pool is counted in, and kept in whole units of it.
            let units = |cap: &Option<Spanned<PerPool<u32>>>| {
                let cap = cap.as_ref().and_then(|cap| cap.get_ref().of(&pool.name))?;
                Some(Gpus(cap / pool.cpus_per_gpu.unwrap_or(1)))
            };
            let min_runtime_max = file.min_runtime_max.as_ref().and_then(|max| max.get_ref().of(&pool.name)).copied().map(Span::from);
            let (gpus_max, unallocated_gpus_max) = (units(&file.gpus_max), units(&file.unallocated_gpus_max));
            pools.push(PoolShare { share, gpus_max, unallocated_gpus_max, min_runtime_max });
        }
        self.add(path, pools, file.order.into()).map_err(|message| source.error(file.path.span(), message))?;
        Ok(())
    }

    fn check_sums(&self, source: &Source<'_>, files: &[BudgetFile]) -> Result<(), ScenarioError> {
        for (parent, pool) in self.specs.iter().flat_map(|parent| (0..self.pools.len()).map(move |pool| (parent, pool))) {
            let children: Vec<&BudgetSpec> = self.specs.iter().filter(|spec| spec.parent == Some(parent.id)).collect();
            let share = |child: &BudgetSpec| u64::from(child.pools[pool].share.0);
            let sum: u64 = children.iter().map(|child| share(child)).sum();
            if sum <= u64::from(Ppm::ONE.0) {
                continue;
            }
            let listed: Vec<String> = children.iter().map(|child| format!("{} {}", child.name, shown_percent(share(child)))).collect();
            let path = &self.paths[parent.id.index()];
            let last = children.last().map_or("", |child| &self.paths[child.id.index()]);
            let place = files.iter().find(|file| file.path.get_ref() == last).map_or(0..0, share_span);
            let of_pool = if self.pools.len() > 1 { format!(" of pool {}", self.pools[pool]) } else { String::new() };
            let message = format!(
                "share: the children of `{path}` have {} together{of_pool} ({}); they may have at most 100 %",
                shown_percent(sum),
                listed.join(", ")
            );
            return Err(source.error(place, message));
        }
        Ok(())
    }

    /// Whether work can be charged to it.
    pub(super) fn is_leaf(&self, id: BudgetId) -> bool {
        !self.specs.iter().any(|spec| spec.parent == Some(id))
    }

    /// A budget by its path, whatever it is.
    pub(super) fn find(&self, path: &str) -> Result<BudgetId, String> {
        if let Some(&id) = self.by_path.get(path) {
            return Ok(id);
        }
        let known: Vec<&str> = self.paths.iter().map(String::as_str).collect();
        Err(match nearest(path, &known) {
            Some(near) => format!("budget = \"{path}\": there is no such budget; did you mean `{near}`?"),
            None => format!("budget = \"{path}\": there is no such budget; add [[budgets]] with path = \"{path}\""),
        })
    }

    /// A leaf by its path.
    pub(super) fn leaf(&self, path: &str) -> Result<BudgetId, String> {
        let id = self.find(path)?;
        if self.is_leaf(id) {
            return Ok(id);
        }
        let below: Vec<&str> = self.specs.iter().filter(|s| s.parent == Some(id)).map(|s| self.paths[s.id.index()].as_str()).collect();
        Err(format!("budget = \"{path}\": work is charged to leaf budgets only; take one of {}", below.join(", ")))
    }

    /// A budget's part of a pool, for the generators.
    pub(super) fn claim(&self, id: BudgetId, pool: PoolId) -> f64 {
        let spec = &self.specs[id.index()];
        let own = f64::from(spec.pools[pool.index()].share.0) / 1e6;
        spec.parent.map_or(own, |parent| own * self.claim(parent, pool))
    }

    /// The same share in every pool.
    pub(super) fn in_all_pools(&self, share: Ppm) -> Vec<PoolShare> {
        vec![PoolShare { share, ..PoolShare::default() }; self.pools.len()]
    }
}

/// A share in percent as parts per million.
pub(super) fn percent(value: f64) -> Result<Ppm, String> {
    if (0.0..=100.0).contains(&value) {
        return Ok(Ppm((value * 10_000.0).round() as u32));
    }
    Err(format!("share = {value}: a share is a percentage of the parent, from 0 to 100"))
}

fn shown_percent(ppm: u64) -> String {
    let decimals = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
    format!("{} %", decimals.trim_end_matches('0').trim_end_matches('.'))
}

/// A pool that is named must exist.
fn check_pools<T>(source: &Source<'_>, written: Option<&Spanned<PerPool<T>>>, hardware: &Hardware) -> Result<(), ScenarioError> {
    let Some(written) = written else { return Ok(()) };
    match written.get_ref().names().find_map(|name| hardware.find(name).err()) {
        Some(message) => Err(source.error(written.span(), message)),
        None => Ok(()),
    }
}

fn share_span(file: &BudgetFile) -> Range<usize> {
    file.share.as_ref().map_or(file.path.span(), toml::Spanned::span)
}
