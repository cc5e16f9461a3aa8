//! From a file as written to a scenario that can run: every reference found, every number checked.

use super::budgets::Tree;
use super::error::ScenarioError;
use super::file::{FailuresFile, ScenarioFile};
use super::fit::never_fits_any;
use super::length::Fraction;
use super::pool::Hardware;
use super::source::Source;
use super::{Failures, Model, Scenario};
use crate::generate::behaviour::{BehaviourFile, Rule};
use crate::generate::lab::{Lab, Team};
use crate::generate::lab_file::LabFile;
use crate::labels::Labels;
use crate::random::cumulative;
use crate::trace::Trace;
use std::collections::BTreeMap;
use std::path::Path;
use stipend_core::id::{BudgetId, UserId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{Features, Gang, NodeSpec, Pools};
use toml::Spanned;

/// What is known while a scenario is resolved.
pub(super) struct Parts<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) hardware: Hardware,
    pub(super) knobs: Knobs,
    pub(super) tree: Tree,
    pub(super) labels: Labels,
    /// A trace that was read already, in place of the file of `[trace]`.
    pub(super) read: Option<Trace>,
    users: BTreeMap<String, UserId>,
}

/// Reads and checks a scenario; `folder` is where its own relative paths begin. `read` is a trace in place of the file of `[trace]`.
pub(super) fn resolve(source: &Source<'_>, folder: &Path, read: Option<Trace>) -> Result<Scenario, ScenarioError> {
    let file = source.read()?;
    if file.measure.get_ref().0 == Span::ZERO {
        return Err(source.error(file.measure.span(), "measure = 0: the run would be over at once; give a length such as \"30d\""));
    }
    let hardware = Hardware::build(source, &(&file).into(), folder)?;
    let tree = Tree::build(source, &file.budgets, &hardware)?;
    let mut parts = Parts { source, hardware, knobs: file.policy.knobs(), tree, labels: Labels::default(), read, users: BTreeMap::new() };
    let trace = file.trace.as_ref().map(|trace| parts.trace(trace, folder)).transpose()?;
    parts.check_root()?;
    let end = Time(file.warmup.0.0 + file.measure.get_ref().0.0);
    let listed = parts.listed(&file.workloads)?;
    let streams = file.streams.iter().map(|stream| parts.stream(stream, end)).collect::<Result<Vec<_>, _>>()?;
    let behaviours = file.behaviours.iter().map(|one| parts.behaviour(one, &file)).collect::<Result<Vec<_>, _>>()?;
    let lab = file.lab.as_ref().map(|lab| parts.lab(lab, &behaviours)).transpose()?;
    if listed.is_empty() && streams.is_empty() && lab.is_none() && trace.is_none() {
        let message = "nothing is ever submitted: give the scenario [[workloads]], [[streams]], a [lab] or a [trace]".into();
        return Err(ScenarioError::File { file: source.file.into(), message });
    }
    let mut happenings = file.happenings.iter().map(|one| parts.happening(one)).collect::<Result<Vec<_>, _>>()?;
    happenings.sort_by_key(|(at, _)| *at);
    let failures = file.failures.as_ref().map(|failures| parts.failures(failures)).transpose()?;
    parts.label();
    let model = parts.model(&file);
    Ok(Scenario {
        name: file.name,
        description: file.description,
        seed: file.seed,
        warmup: file.warmup.0,
        measure: file.measure.get_ref().0,
        drain: file.drain,
        nodes: parts.hardware.nodes,
        pools: parts.hardware.pools,
        knobs: parts.knobs,
        rivals: file.rivals.rivals(),
        budgets: parts.tree.specs,
        labels: parts.labels,
        model,
        failures,
        lab,
        streams,
        behaviours,
        trace,
        listed,
        happenings,
    })
}

impl Parts<'_> {
    /// The leaf that is named here.
    pub(super) fn leaf(&self, path: &Spanned<String>) -> Result<BudgetId, ScenarioError> {
        self.tree.leaf(path.get_ref()).map_err(|message| self.source.error(path.span(), message))
    }

    /// The user of this name; without one, a user with the budget's own name.
    pub(super) fn user(&mut self, name: Option<&str>, budget: &str) -> UserId {
        let name = name.unwrap_or_else(|| budget.rsplit('/').next().unwrap_or(budget));
        if let Some(&id) = self.users.get(name) {
            return id;
        }
        let id = UserId(self.labels.users.len() as u32);
        self.labels.users.push(name.into());
        self.users.insert(name.into(), id);
        id
    }

    /// Who behaves how.
    fn behaviour(&self, file: &Spanned<BehaviourFile>, scenario: &ScenarioFile) -> Result<Rule, ScenarioError> {
        let BehaviourFile { team, users, what } = file.get_ref();
        let wrong = |message: &str| self.source.error(file.span(), message);
        if scenario.lab.is_none() && (scenario.streams.is_empty() || what.is_of_teams()) {
            return Err(wrong("behaviours are of the users of a [lab] or of [[streams]], `hoard` and `burst` of the teams of a [lab]"));
        }
        if what.is_of_teams() && users.is_some() {
            return Err(wrong("`hoard` and `burst` are of a team as a whole: leave out `users`"));
        }
        if let Some(users) = users.as_ref().filter(|users| users.get_ref().0 > Ppm::ONE) {
            return Err(self.source.error(users.span(), "users: a part of them between 0 and 1"));
        }
        let team = team.as_ref().map(|team| self.leaf(team)).transpose()?;
        Ok(Rule { team, users: users.as_ref().map_or(1.0, |users| users.get_ref().value()), what: *what })
    }

    fn label(&mut self) {
        self.labels.budgets = self.tree.paths.clone();
        self.labels.pools = self.hardware.pools.iter().map(|pool| pool.name.clone()).collect();
        self.labels.cpus_per_gpu = self.hardware.pools.iter().map(|pool| pool.cpus_per_gpu).collect();
        self.labels.nodes = std::mem::take(&mut self.hardware.names);
    }

    /// The pools of a list of names.
    pub(super) fn pools(&self, names: Option<&Spanned<Vec<String>>>) -> Result<Pools, ScenarioError> {
        let order = self.hardware.order(names.map(|names| names.get_ref().as_slice()));
        order.map_err(|message| self.source.error(names.map_or(0..0, Spanned::span), message))
    }

    /// The features of a list of names.
    pub(super) fn features(&self, names: Option<&Spanned<Vec<String>>>) -> Result<Features, ScenarioError> {
        let Some(names) = names else { return Ok(Features(0)) };
        self.hardware.known_features(names.get_ref()).map_err(|message| self.source.error(names.span(), message))
    }

    /// Whether a gang could ever run in one of these pools.
    pub(super) fn never_fits(&self, gang: &Gang, pools: &Pools) -> Option<String> {
        never_fits_any(gang, pools, &self.hardware.nodes)
    }

    fn check_root(&self) -> Result<(), ScenarioError> {
        if !self.tree.specs.is_empty() {
            return Ok(());
        }
        let message = "there are no budgets: add [[budgets]] with path = \"lab\" for the root, and others below it".into();
        Err(ScenarioError::File { file: self.source.file.into(), message })
    }

    fn model(&self, file: &ScenarioFile) -> Model {
        Model {
            restart_cost: file.model.restart_cost.map_or(self.knobs.restart_cost, Span::from),
            exit_after: file.model.exit_after.map(Span::from),
            start_delay: file.model.start_delay.0,
            fence_after: file.model.fence_after.0,
        }
    }

    fn failures(&self, file: &FailuresFile) -> Result<Failures, ScenarioError> {
        let weights = [file.lost, file.critical, file.sick, file.maintenance].map(Fraction::value);
        if file.host_mtbf.get_ref().0 == Span::ZERO || weights.iter().sum::<f64>() == 0.0 {
            let message = "[failures] needs a host_mtbf above 0 and a weight above 0 for one of lost, critical, sick, maintenance";
            return Err(self.source.error(file.host_mtbf.span(), message));
        }
        Ok(Failures { host_mtbf: file.host_mtbf.get_ref().0, repair: file.repair.0, weights: cumulative(weights) })
    }

    fn lab(&mut self, file: &Spanned<LabFile>, behaviours: &[Rule]) -> Result<Lab, ScenarioError> {
        let leaves: Vec<BudgetId> = self.tree.specs.iter().map(|spec| spec.id).filter(|&id| self.tree.is_leaf(id)).collect();
        let lab = file.get_ref();
        if lab.factor_min.0 == Ppm(0) || lab.factor_max < lab.factor_min {
            return Err(self.source.error(file.span(), "factor_min and factor_max: the first is above 0 and at most the second"));
        }
        let pools = self.pools(lab.pools.as_ref())?;
        let mut teams = Vec::new();
        for (number, &budget) in leaves.iter().enumerate() {
            let path = self.tree.paths[budget.index()].clone();
            let name = path.rsplit('/').next().unwrap_or(&path);
            let from = lab.users as usize * number / leaves.len();
            let to = (lab.users as usize * (number + 1) / leaves.len()).max(from + 1);
            let users = (from..to).map(|user| self.user(Some(&format!("{name}-{}", user - from + 1)), &path)).collect();
            teams.push(Team { budget, claim: self.tree.claim(budget, pools.first), users });
        }
        let accepted = |node: &&NodeSpec| pools.iter().any(|pool| pool == node.pool);
        let capacity_gpus = self.hardware.nodes.iter().filter(accepted).map(|node| node.gpus).sum();
        let lab = Lab { file: lab.clone(), pools, teams, knobs: self.knobs.clone(), capacity_gpus, behaviours: behaviours.to_vec() };
        match lab.gangs().iter().find_map(|gang| self.never_fits(gang, &lab.pools)) {
            Some(message) => Err(self.source.error(file.span(), format!("{message}; a smaller lab has large = 0"))),
            None => Ok(lab),
        }
    }
}
