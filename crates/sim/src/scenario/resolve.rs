//! From a file as written to a scenario that can run: every reference found, every number checked.

use super::budgets::Tree;
use super::error::ScenarioError;
use super::file::{FailuresFile, ScenarioFile};
use super::fit::never_fits_any;
use super::length::Fraction;
use super::pool::Hardware;
use super::source::Source;
use super::{Failures, Model, Scenario};
use crate::generate::lab::{Lab, Team};
use crate::generate::lab_file::LabFile;
use crate::labels::Labels;
use crate::random::cumulative;
use crate::trace::Trace;
use crate::trace::rules::{Rules, SharesText, TraceFile};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use stipend_core::id::{BudgetId, UserId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{Features, Gang, LeafOrder, NodeSpec, Pools};
use toml::Spanned;

/// What is known while a scenario is resolved.
pub(super) struct Parts<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) hardware: Hardware,
    pub(super) knobs: Knobs,
    pub(super) tree: Tree,
    pub(super) labels: Labels,
    users: BTreeMap<String, UserId>,
}

/// Reads and checks a scenario; `folder` is where its own relative paths begin.
pub(super) fn resolve(source: &Source<'_>, folder: &Path) -> Result<Scenario, ScenarioError> {
    let file = source.read()?;
    if file.measure.get_ref().0 == Span::ZERO {
        return Err(source.error(file.measure.span(), "measure = 0: the run would be over at once; give a length such as \"30d\""));
    }
    let hardware = Hardware::build(source, &file, folder)?;
    let tree = Tree::build(source, &file.budgets, &hardware)?;
    let mut parts = Parts { source, hardware, knobs: file.policy.knobs(), tree, labels: Labels::default(), users: BTreeMap::new() };
    let trace = file.trace.as_ref().map(|trace| parts.trace(trace, folder)).transpose()?;
    parts.check_root()?;
    let end = Time(file.warmup.0.0 + file.measure.get_ref().0.0);
    let listed = parts.listed(&file.workloads)?;
    let streams = file.streams.iter().map(|stream| parts.stream(stream, end)).collect::<Result<Vec<_>, _>>()?;
    let lab = file.lab.as_ref().map(|lab| parts.lab(lab)).transpose()?;
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
        budgets: parts.tree.specs,
        labels: parts.labels,
        model,
        failures,
        lab,
        streams,
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

    fn lab(&mut self, file: &Spanned<LabFile>) -> Result<Lab, ScenarioError> {
        let leaves: Vec<BudgetId> = self.tree.specs.iter().map(|spec| spec.id).filter(|&id| self.tree.is_leaf(id)).collect();
        let lab = file.get_ref();
        if lab.factor_min.0 == Ppm(0) || lab.factor_max < lab.factor_min {
            return Err(self.source.error(file.span(), "factor_min and factor_max: the first is above 0 and at most the second"));
        }
        for path in lab.behaviours.get_ref().keys() {
            self.tree.leaf(path).map_err(|message| self.source.error(lab.behaviours.span(), message))?;
        }
        let pools = self.pools(lab.pools.as_ref())?;
        let mut teams = Vec::new();
        for (number, &budget) in leaves.iter().enumerate() {
            let path = self.tree.paths[budget.index()].clone();
            let name = path.rsplit('/').next().unwrap_or(&path);
            let from = lab.users as usize * number / leaves.len();
            let to = (lab.users as usize * (number + 1) / leaves.len()).max(from + 1);
            let users = (from..to).map(|user| self.user(Some(&format!("{name}-{}", user - from + 1)), &path)).collect();
            let behaviour = lab.behaviours.get_ref().get(&path).copied().unwrap_or_default();
            teams.push(Team { budget, claim: self.tree.claim(budget, pools.first), users, behaviour });
        }
        let accepted = |node: &&NodeSpec| pools.iter().any(|pool| pool == node.pool);
        let capacity_gpus = self.hardware.nodes.iter().filter(accepted).map(|node| node.gpus).sum();
        let lab = Lab { file: lab.clone(), pools, teams, knobs: self.knobs.clone(), capacity_gpus };
        match lab.gangs().iter().find_map(|gang| self.never_fits(gang, &lab.pools)) {
            Some(message) => Err(self.source.error(file.span(), format!("{message}; a smaller lab has large = 0"))),
            None => Ok(lab),
        }
    }

    fn trace(&mut self, file: &Spanned<TraceFile>, folder: &Path) -> Result<(Trace, Rules), ScenarioError> {
        let written = file.get_ref();
        let Some(name) = &written.file else {
            return Err(self.source.error(file.span(), "the scenario replays a file: name it with --set trace=FILE"));
        };
        if let Some(bounds) =
            written.estimates.as_ref().filter(|bounds| bounds.get_ref()[0].0 == Ppm(0) || bounds.get_ref()[1] < bounds.get_ref()[0])
        {
            let message = "estimates: two multiples of the work such as [1.05, 2.05]; the first is above 0 and at most the second";
            return Err(self.source.error(bounds.span(), message));
        }
        let path: PathBuf = self.source.path(name, folder);
        let input = File::open(&path).map_err(|source| ScenarioError::Unreadable { path: path.clone(), source })?;
        let shown = path.display().to_string();
        let wrong = |message: String| ScenarioError::File { file: shown.clone(), message };
        let mut trace = Trace::read(input).map_err(wrong)?;
        let budgets = self.team_budgets(written, &mut trace).map_err(|message| self.source.error(file.span(), message))?;
        let first_user = self.labels.users.len() as u32;
        self.labels.users.extend(trace.users.iter().cloned());
        let pools = self.pools(written.pools.as_ref())?;
        let gpus_per_node = self.hardware.nodes.iter().map(|node| node.gpus).max().unwrap_or(8);
        let rules = Rules { pools, ..written.rules(budgets, first_user, &self.knobs, gpus_per_node) };
        // A trace has few sizes and many rows.
        let mut sizes: BTreeMap<(u32, u32), Option<String>> = BTreeMap::new();
        trace.leave_out(|row| {
            sizes.entry((row.members, row.gpus)).or_insert_with(|| self.never_fits(&rules.gang(row), &rules.pools)).clone()
        });
        if trace.rows.is_empty() {
            return Err(wrong(format!("no row can be used{}", trace.notes())));
        }
        if written.strict && trace.bad_rows > 0 {
            return Err(wrong(format!("{} rows cannot be used, and `strict` is set{}", trace.bad_rows, trace.notes())));
        }
        Ok((trace, rules))
    }

    /// The budget of each team: found by the template, or made.
    fn team_budgets(&mut self, file: &TraceFile, trace: &mut Trace) -> Result<Vec<BudgetId>, String> {
        let template = file.budget.as_ref().map_or("trace/{team}", |budget| budget.get_ref());
        let paths: Vec<String> = trace.teams.iter().map(|team| template.replace("{team}", &team.replace('/', "-"))).collect();
        if file.shares == SharesText::Listed {
            let found: Vec<Result<BudgetId, String>> = paths.iter().map(|path| self.tree.leaf(path)).collect();
            trace.leave_out(|row| found[row.team as usize].as_ref().err().cloned());
            return Ok(found.into_iter().map(Result::unwrap_or_default).collect());
        }
        if self.tree.specs.is_empty() {
            let root = template.split('/').next().unwrap_or("trace");
            self.tree.add(root, self.tree.in_all_pools(Ppm::ONE), LeafOrder::Priority)?;
        }
        let usage = trace.usage_by_team(file.shares == SharesText::Equal);
        let total: u128 = usage.iter().sum::<u128>().max(1);
        let share = |usage: u128| Ppm((usage * 1_000_000 / total) as u32);
        let mut add = |path: &str, share: Ppm| self.tree.add(path, self.tree.in_all_pools(share), LeafOrder::Priority);
        paths.iter().zip(&usage).map(|(path, &usage)| add(path, share(usage))).collect()
    }
}
