//! `[trace]` resolved: the file read, its teams' budgets found or made, its rules settled.

use super::error::ScenarioError;
use super::overrides::nearest;
use super::resolve::Parts;
use crate::trace::Trace;
use crate::trace::rules::{Rules, SharesText, TraceFile};
use crate::trace::shares;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use stipend_core::id::BudgetId;
use stipend_core::quantity::Ppm;
use stipend_core::spec::{LeafOrder, PoolShare, Pools};
use toml::Spanned;

/// More rows than this, copies included, are a slip of the pen.
const ROWS_MAX: u64 = 20_000_000;

impl Parts<'_> {
    /// Reads the trace and settles what its rows mean.
    pub(super) fn trace(&mut self, file: &Spanned<TraceFile>, folder: &Path) -> Result<(Trace, Rules), ScenarioError> {
        let written = file.get_ref();
        self.check_trace(written)?;
        let cpu_pools = self.hardware.cpu_pools();
        let (shown, mut trace) = match (self.read.take(), &written.file) {
            (Some(trace), _) => (self.source.file.to_owned(), trace),
            (None, Some(name)) => {
                let (shown, input) = self.open(name, folder)?;
                let wrong = |message: String| ScenarioError::File { file: shown.clone(), message };
                let trace = Trace::read(input, written.reading(cpu_pools.is_some())).map_err(wrong)?;
                (shown, trace)
            }
            (None, None) => {
                return Err(self.source.error(file.span(), "the scenario replays a file: name it with --set trace=FILE"));
            }
        };
        let wrong = |message: String| ScenarioError::File { file: shown.clone(), message };
        if let (Some(_), false, Some(budget)) = (written.columns_of_budget(), trace.teams_by_column, &written.budget) {
            let message = format!(
                "budget = \"{}\": only a Slurm log has such columns, and {shown} is none ({}); write {{team}}",
                budget.get_ref(),
                trace.form
            );
            return Err(self.source.error(budget.span(), message));
        }
        trace.keep_what_ran();
        self.check_teams(written, &trace)?;
        let budgets = match &written.shares_file {
            Some(name) => self.budgets_of_file(written, name, folder, &mut trace)?,
            None => self.team_budgets(written, &mut trace).map_err(|message| self.source.error(file.span(), message))?,
        };
        let first_user = self.labels.users.len() as u32;
        self.labels.users.extend(trace.users.iter().cloned());
        let pools = self.pools_of_rows(written, &mut trace)?;
        let accepted = |pools: &Pools| self.hardware.accepted(pools);
        let rules = Rules {
            pools: pools.iter().map(accepted).collect(),
            cpu_pools: cpu_pools.as_ref().map(accepted),
            ..written.rules(&trace.teams, budgets, first_user, &self.knobs, &self.hardware.nodes)
        };
        // A trace has few sizes and many rows.
        let mut sizes = HashMap::new();
        trace.leave_out(|row| {
            let gang = rules.gang(row);
            let of = (gang, row.pools, row.gpus == 0);
            sizes.entry(of).or_insert_with(|| self.never_fits(&gang, &rules.accepted(row).pools)).clone()
        });
        if trace.rows.is_empty() {
            if trace.bad_rows == 0 && trace.skipped.is_empty() {
                return Err(wrong("it has a header, and no rows below it".into()));
            }
            let remarks: String = trace.remarks().iter().map(|remark| format!("\n  {remark}")).collect();
            return Err(wrong(format!("no row can be used{}{remarks}", trace.notes())));
        }
        if written.strict && trace.bad_rows > 0 {
            return Err(wrong(format!("{} rows cannot be used, and `strict` is set{}", trace.bad_rows, trace.notes())));
        }
        if let Some(copies) = &written.copies {
            let rows = trace.rows.len() as u64 * u64::from(*copies.get_ref());
            if rows > ROWS_MAX {
                let message = format!("copies = {}: these are {rows} rows; {ROWS_MAX} are possible", copies.get_ref());
                return Err(self.source.error(copies.span(), message));
            }
            trace.multiply(*copies.get_ref());
        }
        Ok((trace, rules))
    }

    /// For each list of names (kinds of GPU) in the trace the pools of those names, in the same order. Names that no pool has are passed over;
    /// where none is left, and where a row names none, its work accepts what `[trace]` says. Where there are several pools to tell apart, the
    /// rows of which no name is known are counted.
    fn pools_of_rows(&self, file: &TraceFile, trace: &mut Trace) -> Result<Vec<Pools>, ScenarioError> {
        let default = self.pools(file.pools.as_ref())?;
        let known: Vec<Option<Pools>> = trace
            .pools
            .iter()
            .map(|names| Pools::from_order(&names.iter().filter_map(|name| self.hardware.find_kind(name)).collect::<Vec<_>>()))
            .collect();
        let unknown = |list: usize| known[list].is_none() && !trace.pools[list].is_empty();
        let rows = trace.rows.iter().filter(|row| unknown(row.pools as usize)).count();
        if rows > 0 && self.hardware.pools.len() > 1 {
            let names: BTreeSet<&String> = (0..known.len()).filter(|&list| unknown(list)).flat_map(|list| &trace.pools[list]).collect();
            let names: Vec<String> = names.into_iter().cloned().collect();
            trace.said.push(format!(
                "{rows} rows ask for {}, and no pool has that name or model: they accept any pool that [trace] allows",
                few(&names)
            ));
        }
        Ok(known.into_iter().map(|pools| pools.unwrap_or_else(|| default.clone())).collect())
    }

    /// A file named in the scenario or in an override, with its path for messages.
    fn open(&self, name: &Spanned<String>, folder: &Path) -> Result<(String, File), ScenarioError> {
        let from = if self.source.is_override(&name.span()) { Path::new("") } else { folder };
        let path: PathBuf = from.join(name.get_ref());
        let input = File::open(&path).map_err(|source| ScenarioError::Unreadable { path: path.clone(), source })?;
        Ok((path.display().to_string(), input))
    }

    /// What can be wrong with the section by itself.
    fn check_trace(&self, file: &TraceFile) -> Result<(), ScenarioError> {
        let estimates = file.estimates.as_ref();
        if let Some(bounds) = estimates.filter(|bounds| bounds.get_ref()[0].0 == Ppm(0) || bounds.get_ref()[1] < bounds.get_ref()[0]) {
            let message = "estimates: two multiples of the work such as [1.05, 2.05]; the first is above 0 and at most the second";
            return Err(self.source.error(bounds.span(), message));
        }
        for (name, value) in [("procs_per_gpu", &file.procs_per_gpu), ("copies", &file.copies)] {
            if let Some(value) = value.as_ref().filter(|value| *value.get_ref() == 0) {
                return Err(self.source.error(value.span(), format!("{name} = 0: at least 1")));
            }
        }
        match (&file.shares, &file.shares_file, &file.shares_rest) {
            (Some(shares), Some(_), _) => {
                let message = "shares: with shares_file the shares are the file's; leave one of the two out";
                Err(self.source.error(shares.span(), message))
            }
            (_, None, Some(rest)) => {
                let message = "shares_rest: it is the weight of teams that a shares_file does not name; give that too, or leave it out";
                Err(self.source.error(rest.span(), message))
            }
            _ => Ok(()),
        }
    }

    /// Every team that has rules of its own is one of the trace.
    fn check_teams(&self, file: &TraceFile, trace: &Trace) -> Result<(), ScenarioError> {
        let Some(teams) = &file.teams else { return Ok(()) };
        let known: Vec<&str> = trace.teams.iter().map(String::as_str).collect();
        match teams.get_ref().keys().find(|team| !known.contains(&team.as_str())) {
            None => Ok(()),
            Some(team) => {
                let near = nearest(team, &known).map_or(format!("it has {}", few(&trace.teams)), |near| format!("did you mean `{near}`?"));
                Err(self.source.error(teams.span(), format!("[trace.teams.{team}]: the trace has no such team; {near}")))
            }
        }
    }

    /// The budget of each team: found by the template, or made.
    fn team_budgets(&mut self, file: &TraceFile, trace: &mut Trace) -> Result<Vec<BudgetId>, String> {
        let paths: Vec<String> = trace.teams.iter().map(|team| file.path(team)).collect();
        let shares = file.shares.as_ref().map_or(SharesText::Listed, |shares| *shares.get_ref());
        if shares == SharesText::Listed {
            let found: Vec<Result<BudgetId, String>> = paths.iter().map(|path| self.tree.leaf(path)).collect();
            trace.leave_out(|row| found[row.team as usize].as_ref().err().cloned());
            return Ok(found.into_iter().map(Result::unwrap_or_default).collect());
        }
        let usage = trace.usage_by_team(shares == SharesText::Equal);
        let weights: Vec<(String, [u128; 2])> = trace.teams.iter().cloned().zip(usage).collect();
        let made = self.make(file, &weights)?;
        Ok(paths.iter().map(|path| made[path]).collect())
    }

    /// Makes budgets with shares by these weights, in pools of GPUs and of CPUs: one for each path that the template gives, and those above it
    /// that do not exist, with the weight of all below them. Teams of the same path share it.
    fn make(&mut self, file: &TraceFile, weights: &[(String, [u128; 2])]) -> Result<BTreeMap<String, BudgetId>, String> {
        if self.tree.specs.is_empty() {
            let below = file.path("team");
            let root = below.split('/').next().unwrap_or("trace");
            self.tree.add(root, self.tree.in_all_pools(Ppm::ONE), LeafOrder::Priority)?;
        }
        let (mut order, mut sums): (Vec<String>, BTreeMap<String, [u128; 2]>) = (Vec::new(), BTreeMap::new());
        for (team, weight) in weights {
            let path = file.path(team);
            let ends = path.match_indices('/').map(|(place, _)| place).chain([path.len()]);
            for above in ends.map(|end| &path[..end]).filter(|above| self.tree.find(above).is_err() || **above == *path) {
                if !sums.contains_key(above) {
                    order.push(above.into());
                }
                let sum = sums.entry(above.into()).or_default();
                sum.iter_mut().zip(weight).for_each(|(sum, weight)| *sum += weight);
            }
        }
        let parent = |path: &str| path.rsplit_once('/').map_or(String::new(), |(parent, _)| parent.into());
        let mut totals: BTreeMap<String, [u128; 2]> = BTreeMap::new();
        for (path, weight) in &sums {
            let total = totals.entry(parent(path)).or_default();
            total.iter_mut().zip(weight).for_each(|(total, weight)| *total += weight);
        }
        let one = |path: String| {
            let pools = self.shares(sums[&path], totals[&parent(&path)]);
            Ok((path.clone(), self.tree.add(&path, pools, file.order.into())?))
        };
        order.into_iter().map(one).collect()
    }

    /// A part of the whole in each pool, by the weights in GPUs or in CPUs; by those that there are, where there are only the others.
    fn shares(&self, weights: [u128; 2], totals: [u128; 2]) -> Vec<PoolShare> {
        let share = |of_cpus: bool| {
            let kind = usize::from(of_cpus);
            let kind = if totals[kind] > 0 { kind } else { 1 - kind };
            PoolShare { share: part(weights[kind], totals[kind]), ..PoolShare::default() }
        };
        self.hardware.pools.iter().map(|pool| share(pool.cpus_per_gpu.is_some())).collect()
    }

    /// The budget of each team, made with the shares of a file. What stands in one of the two files only is said.
    fn budgets_of_file(
        &mut self,
        file: &TraceFile,
        name: &Spanned<String>,
        folder: &Path,
        trace: &mut Trace,
    ) -> Result<Vec<BudgetId>, ScenarioError> {
        let (shown, input) = self.open(name, folder)?;
        let wrong = |message: String| ScenarioError::File { file: shown.clone(), message };
        let mut listed = shares::read(input).map_err(wrong)?;
        let without: Vec<String> = trace.teams.iter().filter(|team| listed.iter().all(|(name, _)| name != *team)).cloned().collect();
        let idle: Vec<String> = listed.iter().map(|(name, _)| name).filter(|name| !trace.teams.contains(name)).cloned().collect();
        if let Some(rest) = &file.shares_rest {
            let weight = (rest.get_ref().value() * 1000.0).round() as u64;
            listed.extend(without.iter().map(|team| (team.clone(), weight)));
            if !without.is_empty() {
                trace.said.push(format!(
                    "{shown} does not name {}: each counts as {} (shares_rest)",
                    few(&without),
                    rest.get_ref().value()
                ));
            }
        }
        if !idle.is_empty() {
            trace.said.push(format!("{shown} names {}, which the trace does not: they have their shares and no work", few(&idle)));
        }
        let weights: Vec<(String, [u128; 2])> = listed.iter().map(|(team, weight)| (team.clone(), [u128::from(*weight); 2])).collect();
        let made = self.make(file, &weights).map_err(|message| self.source.error(name.span(), message))?;
        let named = |team: &String| weights.iter().any(|(name, _)| name == team);
        let found: Vec<Option<BudgetId>> =
            trace.teams.iter().map(|team| made.get(&file.path(team)).copied().filter(|_| named(team))).collect();
        let teams = trace.teams.clone();
        trace.leave_out(|row| match found[row.team as usize] {
            Some(_) => None,
            None => Some(format!("{shown} does not name their team `{}`; add it there, or give shares_rest", teams[row.team as usize])),
        });
        Ok(found.into_iter().map(Option::unwrap_or_default).collect())
    }
}

/// A part of the whole, rounded down, so that all parts together are never more than it.
fn part(weight: u128, total: u128) -> Ppm {
    Ppm((weight.saturating_mul(1_000_000) / total.max(1)) as u32)
}

/// Some names.
fn few(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(6).map(|name| format!("`{name}`")).collect();
    let rest = names.len().saturating_sub(shown.len());
    if rest > 0 { format!("{} and {rest} others", shown.join(", ")) } else { shown.join(", ") }
}

#[cfg(test)]
mod tests;
