//! Changes of the budget tree: resolved from paths, checked against rights and against all that is dated later, applied now or at their date.

use super::input::Answer;
use super::{Service, Who};
use crate::store::People;
use crate::wire::budget::{BudgetChange, Changeset, ChangesetRequest, PerPool};
use crate::wire::error::{Code, Problem};
use std::collections::BTreeMap;
use stipend_core::budget::{Budget, BudgetTree};
use stipend_core::event::Event;
use stipend_core::id::BudgetId;
use stipend_core::quantity::{Gpus, Ppm};
use stipend_core::spec::{self, BudgetSpec, LeafOrder, PoolShare};
use stipend_sim::harmless::is_harmless;
use stipend_sim::refusal::Refusal;

/// A changeset with its paths resolved in one version of the tree.
pub(super) struct Resolved {
    pub(super) change: spec::Changeset,
    people: Vec<(BudgetId, People)>,
    pub(super) difference: Vec<String>,
}

impl Service {
    /// Changes the tree, now or at a date; with `dry_run` it only says what that would be.
    pub(super) fn change_budgets(&mut self, who: &Who, request: ChangesetRequest, dry_run: bool) -> Answer<Changeset> {
        let tree = self.scheduler.tree();
        if request.based_on != tree.version() {
            let message =
                format!("the change was made from version {} of the tree, which is at version {} now", request.based_on, tree.version());
            return Err(Problem::new(Code::Conflict, message).hint("look at the tree again, then repeat the change; nothing was changed"));
        }
        if request.reason.trim().is_empty() {
            return Err(Problem::new(Code::Invalid, "reason: it is empty; say why, others will read it"));
        }
        self.check_rights(who, &request.budgets)?;
        if let Some(past) = request.effective_ms.filter(|at| *at < self.now.0 - 60_000) {
            let message = format!("effective_ms = {past}: that is in the past; leave it out, and the change takes effect now");
            return Err(Problem::new(Code::Invalid, message));
        }
        let effective_ms = request.effective_ms.unwrap_or(self.now.0).max(self.now.0);
        let mut changeset = Changeset {
            id: self.next_changeset,
            version: None,
            author: who.user.clone(),
            reason: request.reason,
            made_ms: self.now.0,
            effective_ms,
            withdrawn: false,
            budgets: request.budgets,
            difference: Vec::new(),
        };
        changeset.difference = self.timeline(&changeset)?;
        if changeset.difference.is_empty() {
            return Err(Problem::new(Code::Invalid, "budgets: nothing would change").hint("the tree is as asked for already"));
        }
        if dry_run {
            return Ok(changeset);
        }
        self.next_changeset += 1;
        if effective_ms > self.now.0 {
            self.batch.changesets.push(changeset.clone());
            self.pending.push(changeset.clone());
            self.pending.sort_by_key(|changeset| (changeset.effective_ms, changeset.id));
            return Ok(changeset);
        }
        self.apply_changeset(changeset)
    }

    /// Takes a changeset back that waits for its date.
    pub(super) fn withdraw(&mut self, who: &Who, id: u64) -> Answer<Changeset> {
        let place = self.pending.iter().position(|changeset| changeset.id == id);
        let place = place.ok_or_else(|| Problem::new(Code::NotFound, format!("no changeset {id} waits for its date")))?;
        self.check_rights(who, &self.pending[place].budgets)?;
        let taken = self.pending.remove(place);
        // What is dated later may build on it.
        if let Err(problem) = self.timeline_of(&[]) {
            self.pending.insert(place, taken);
            return Err(problem);
        }
        let withdrawn = Changeset { withdrawn: true, ..taken };
        self.batch.changesets.push(withdrawn.clone());
        Ok(withdrawn)
    }

    /// Applies those whose date has come. They were checked against everything before them; what fails all the same is told and kept.
    pub(super) fn apply_dated_changesets(&mut self) {
        while self.pending.first().is_some_and(|changeset| changeset.effective_ms <= self.now.0) {
            let changeset = self.pending.remove(0);
            let id = changeset.id;
            if let Err(problem) = self.apply_changeset(changeset.clone()) {
                tracing::error!("changeset {id} could not be applied at its date: {}", problem.message);
                let difference = vec![format!("not applied: {}", problem.message)];
                self.batch.changesets.push(Changeset { withdrawn: true, difference, ..changeset });
            }
        }
    }

    fn apply_changeset(&mut self, mut changeset: Changeset) -> Answer<Changeset> {
        let tree = self.scheduler.tree();
        let Resolved { change, people, difference } = self.resolve(tree, &changeset)?;
        let before = paths(tree);
        self.tell(Event::BudgetsChanged(change)).map_err(|rejection| Problem::new(Code::Invalid, self.sentence(&rejection)))?;
        self.follow_moves(&before);
        for (budget, people) in people {
            self.batch.people.push((budget.0, people.clone()));
            self.directory.set_people(budget, people);
        }
        (changeset.version, changeset.difference) = (Some(self.scheduler.tree().version()), difference);
        self.batch.changesets.push(changeset.clone());
        Ok(changeset)
    }

    /// Live workloads go with budgets that have another path now.
    fn follow_moves(&mut self, before: &BTreeMap<BudgetId, String>) {
        let after = paths(self.scheduler.tree());
        let moved: BTreeMap<&String, &String> =
            before.iter().filter_map(|(id, path)| Some((path, after.get(id)?))).filter(|(from, to)| from != to).collect();
        if !moved.is_empty() {
            self.live.move_budgets(&moved);
        }
    }

    /// Checks a changeset with all that are dated, in the order of their dates; its own difference.
    fn timeline(&self, new: &Changeset) -> Answer<Vec<String>> {
        self.timeline_of(std::slice::from_ref(new))
    }

    fn timeline_of(&self, new: &[Changeset]) -> Answer<Vec<String>> {
        let mut all: Vec<&Changeset> = self.pending.iter().chain(new).collect();
        all.sort_by_key(|changeset| (changeset.effective_ms, changeset.id));
        let (mut tree, mut own) = (self.scheduler.tree().clone(), Vec::new());
        for changeset in all {
            let is_new = new.iter().any(|new| new.id == changeset.id);
            let step = self.resolve(&tree, changeset).and_then(|resolved| {
                let next = tree.changed(&resolved.change, self.pool_count());
                let next = next.map_err(|rejection| {
                    let names = super::Labels { directory: &self.directory, tree: &tree };
                    Problem::new(Code::Invalid, Refusal { rejection: &rejection, names: &names }.to_string())
                })?;
                Ok((next, resolved.difference))
            });
            let (next, difference) = step.map_err(|problem| match is_new {
                true => problem,
                false => Problem {
                    message: format!(
                        "changeset {} of {}, which is dated later, could not be applied then: {}",
                        changeset.id, changeset.author, problem.message
                    ),
                    hint: Some(format!("withdraw it first: stipend budget withdraw {}", changeset.id)),
                    ..problem
                },
            })?;
            if is_new {
                own = difference;
            }
            tree = next;
        }
        Ok(own)
    }

    fn pool_count(&self) -> usize {
        self.directory.names(crate::store::Kind::Pool).len()
    }

    /// Whether somebody may make all of these changes.
    fn check_rights(&self, who: &Who, changes: &[BudgetChange]) -> Answer<()> {
        let tree = self.scheduler.tree();
        for change in changes {
            match self.directory.budget(tree, &change.path) {
                Ok(budget) => self.directory.may_manage(who, budget)?,
                Err(problem) => self.may_create(who, &change.path).map_err(|forbidden| forbidden.unwrap_or(problem))?,
            }
            if let Some(to) = &change.rename_to {
                self.may_create(who, to).map_err(|forbidden| forbidden.unwrap_or_else(|| unwritten(to)))?;
            }
        }
        Ok(())
    }

    /// Whether somebody may make a budget of this path: they manage the nearest budget above it that exists.
    fn may_create(&self, who: &Who, path: &str) -> Result<(), Option<Problem>> {
        let tree = self.scheduler.tree();
        let above = path.rmatch_indices('/').find_map(|(end, _)| tree.top_down().find(|budget| budget.path == path[..end]));
        match above {
            Some(above) => self.directory.may_manage_below(who, above).map_err(Some),
            None if who.role == crate::wire::token::Role::Admin => Ok(()),
            None => Err(None),
        }
    }

    /// Finds what a changeset means in one version of the tree.
    pub(super) fn resolve(&self, tree: &BudgetTree, changeset: &Changeset) -> Answer<Resolved> {
        let mut specs: Vec<(String, BudgetSpec)> = Vec::new();
        let (mut people, mut difference) = (Vec::new(), Vec::new());
        let mut next = tree.top_down().map(|budget| budget.spec.id.0 + 1).max().unwrap_or(0);
        for change in &changeset.budgets {
            if specs.iter().any(|(path, _)| *path == change.path) {
                return Err(Problem::new(Code::Invalid, format!("path = \"{}\": it is changed twice", change.path)));
            }
            let known = tree.top_down().find(|budget| budget.path == change.path);
            let mut spec = match known {
                Some(budget) => budget.spec.clone(),
                None => {
                    let id = BudgetId(next);
                    next += 1;
                    new_budget(id, change, tree, &specs)?
                }
            };
            if let Some(to) = &change.rename_to {
                move_to(&mut spec, to, tree)
                    .map_err(|message| Problem::new(Code::Invalid, format!("{}: rename_to = \"{to}\": {message}", change.path)))?;
            }
            self.set(&mut spec, change, known)?;
            difference.extend(self.differences(&spec, change, known));
            let of = self.people_after(spec.id, change);
            if let Some(of) = of {
                people.push((spec.id, of));
            }
            specs.push((change.path.clone(), spec));
        }
        let budgets = specs.into_iter().map(|(_, spec)| spec).collect();
        let (author, reason) = (changeset.author.clone(), changeset.reason.clone());
        Ok(Resolved { change: spec::Changeset { based_on: tree.version(), author, reason, budgets }, people, difference })
    }

    /// Sets what a change states.
    fn set(&self, spec: &mut BudgetSpec, change: &BudgetChange, known: Option<&Budget>) -> Answer<()> {
        let wrong = |field: &str, message: String| Problem::new(Code::Invalid, format!("{}: {field}: {message}", change.path));
        if known.is_none() && change.share.is_none() && spec.parent.is_some() {
            return Err(wrong("share", "a new budget must state it, in percent of its parent".into()));
        }
        spec.pools.resize(self.pool_count().max(spec.pools.len()), PoolShare::default());
        for (number, pool) in self.directory.names(crate::store::Kind::Pool).iter().enumerate() {
            let share = &mut spec.pools[number];
            match change.share.as_ref().map(|share| of_pool(share, pool)) {
                Some(Some(percent)) => share.share = ppm(*percent).map_err(|message| wrong("share", message))?,
                None if known.is_none() => share.share = Ppm::ONE,
                _ => {}
            }
            if let Some(Some(cap)) = change.gpus_max.as_ref().map(|cap| of_pool(cap, pool)) {
                share.gpus_max = cap.map(Gpus);
            }
            if let Some(Some(cap)) = change.unallocated_gpus_max.as_ref().map(|cap| of_pool(cap, pool)) {
                share.unallocated_gpus_max = cap.map(Gpus);
            }
            if let Some(Some(cap)) = change.min_runtime_max.as_ref().map(|cap| of_pool(cap, pool)) {
                share.min_runtime_max = cap.map(|cap| cap.0);
            }
        }
        let people = change.managers.iter().chain(&change.members).flatten();
        if let Some(name) = people.into_iter().find(|name| !is_user(name)) {
            return Err(wrong("members and managers", format!("{name:?} is no user's name; `*` is everybody")));
        }
        for named in named_pools(change) {
            self.directory.pool(named)?;
        }
        spec.closed = change.closed.unwrap_or(spec.closed);
        if let Some(order) = &change.order {
            spec.order = order_of(order).map_err(|message| wrong("order", message))?;
        }
        Ok(())
    }

    fn people_after(&self, id: BudgetId, change: &BudgetChange) -> Option<People> {
        if change.managers.is_none() && change.members.is_none() {
            return None;
        }
        let before = self.directory.people(id);
        Some(People {
            managers: change.managers.clone().unwrap_or(before.managers),
            members: change.members.clone().unwrap_or(before.members),
        })
    }

    /// What a change changes, a line each.
    fn differences(&self, spec: &BudgetSpec, change: &BudgetChange, known: Option<&Budget>) -> Vec<String> {
        // Taken apart whole, so that no field is forgotten; a new parent or name is in `rename_to`.
        let BudgetSpec { id, parent: _, name: _, pools: shares, order, closed } = spec;
        let mut lines = Vec::new();
        let pools = self.directory.names(crate::store::Kind::Pool);
        for (number, pool) in pools.iter().enumerate() {
            let before = known.map_or_else(PoolShare::default, |known| known.share(stipend_core::id::PoolId(number as u16)));
            let PoolShare { share, gpus_max, unallocated_gpus_max, min_runtime_max } = shares[number];
            let of = if pools.len() > 1 { format!(" in {pool}") } else { String::new() };
            let mut line = |what: &str, from: String, to: String| {
                if from != to {
                    lines.push(format!("{} {what}{of} {from} -> {to}", change.path));
                }
            };
            line("share", percent(before.share), percent(share));
            line("gpus_max", gpus(before.gpus_max), gpus(gpus_max));
            line("unallocated_gpus_max", gpus(before.unallocated_gpus_max), gpus(unallocated_gpus_max));
            line("min_runtime_max", cap(before.min_runtime_max), cap(min_runtime_max));
        }
        let people = self.directory.people(*id);
        let mut list = |what: &str, before: &[String], after: &Option<Vec<String>>| {
            if let Some(after) = after.as_ref().filter(|after| after[..] != *before) {
                lines.push(format!("{} {what} [{}] -> [{}]", change.path, before.join(", "), after.join(", ")));
            }
        };
        list("managers", &people.managers, &change.managers);
        list("members", &people.members, &change.members);
        let order_before = known.map_or_else(LeafOrder::default, |known| known.spec.order);
        if *order != order_before {
            lines.push(format!("{} order {} -> {}", change.path, order_name(order_before), order_name(*order)));
        }
        if *closed != known.is_some_and(|known| known.spec.closed) {
            lines.push(format!("{} {}", change.path, if *closed { "closes" } else { "opens again" }));
        }
        if let Some(to) = change.rename_to.as_ref().filter(|to| **to != change.path) {
            lines.push(format!("{} becomes {to}", change.path));
        }
        if known.is_none() {
            lines.insert(0, format!("{} is new", change.path));
        }
        lines
    }
}

fn paths(tree: &BudgetTree) -> BTreeMap<BudgetId, String> {
    tree.top_down().map(|budget| (budget.spec.id, budget.path.clone())).collect()
}

fn unwritten(path: &str) -> Problem {
    Problem::new(Code::Forbidden, format!("only an administrator makes a budget such as `{path}`"))
}

/// A budget that is new, below a parent of the tree or of the same changeset.
fn new_budget(id: BudgetId, change: &BudgetChange, tree: &BudgetTree, specs: &[(String, BudgetSpec)]) -> Answer<BudgetSpec> {
    let path = &change.path;
    let wrong = |message: String| Problem::new(Code::Invalid, format!("path = \"{path}\": {message}"));
    let (above, name) = path.rsplit_once('/').map_or((None, path.as_str()), |(above, name)| (Some(above), name));
    if !is_path(path) {
        return Err(wrong(PATH.into()));
    }
    let in_tree = |above: &str| tree.top_down().find(|budget| budget.path == above).map(|budget| budget.spec.id);
    let parent = match above {
        None => None,
        Some(above) => {
            let of_change = || specs.iter().find(|(path, _)| path == above).map(|(_, spec)| spec.id);
            Some(in_tree(above).or_else(of_change).ok_or_else(|| wrong(format!("its parent `{above}` does not exist; make it first")))?)
        }
    };
    Ok(BudgetSpec { id, parent, name: name.into(), pools: Vec::new(), order: LeafOrder::default(), closed: false })
}

/// Gives a budget another name, or another parent, which exists.
fn move_to(spec: &mut BudgetSpec, to: &str, tree: &BudgetTree) -> Result<(), String> {
    if !is_path(to) {
        return Err(PATH.into());
    }
    let (above, name) = to.rsplit_once('/').map_or((None, to), |(above, name)| (Some(above), name));
    let parent = above.map(|above| tree.top_down().find(|budget| budget.path == above).map(|budget| budget.spec.id).ok_or(above));
    let parent = parent.transpose().map_err(|above| format!("its parent `{above}` does not exist"))?;
    (spec.parent, spec.name) = (parent, name.into());
    Ok(())
}

/// What a path is.
const PATH: &str = "every part of a path has a name of 1 to 60 letters, digits, `-`, `_`, `.` or `+`, such as lab/nlp/olmo";

fn is_path(path: &str) -> bool {
    let is_name = |part: &str| {
        let is_letter = |letter: char| letter.is_alphanumeric() || "-_.+".contains(letter);
        (1..=60).contains(&part.chars().count()) && part.chars().all(is_letter)
    };
    path.len() <= 500 && path.split('/').all(is_name)
}

/// A user as people name one.
pub(super) fn is_user(name: &str) -> bool {
    (1..=100).contains(&name.chars().count()) && name.chars().all(|letter| is_harmless(letter) && !letter.is_whitespace() && letter != '/')
}

fn of_pool<'v, T>(value: &'v PerPool<T>, pool: &str) -> Option<&'v T> {
    match value {
        PerPool::All(value) => Some(value),
        PerPool::By(by_pool) => by_pool.get(pool),
    }
}

fn named_pools(change: &BudgetChange) -> impl Iterator<Item = &str> {
    fn names<T>(value: &Option<PerPool<T>>) -> Vec<&str> {
        match value {
            Some(PerPool::By(by_pool)) => by_pool.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
    let caps = names(&change.gpus_max).into_iter().chain(names(&change.unallocated_gpus_max));
    names(&change.share).into_iter().chain(caps).chain(names(&change.min_runtime_max))
}

fn ppm(percent: f64) -> Result<Ppm, String> {
    let ppm = percent * 10_000.0;
    if (0.0..=100.0).contains(&percent) && (ppm - ppm.round()).abs() < 1e-6 {
        return Ok(Ppm(ppm.round() as u32));
    }
    Err(format!("{percent}: expected a number from 0 to 100 with up to four decimals, percent of its parent"))
}

fn order_of(text: &str) -> Result<LeafOrder, String> {
    match text {
        "priority" => Ok(LeafOrder::Priority),
        "fifo" => Ok(LeafOrder::Fifo),
        "shortest-contract" => Ok(LeafOrder::ShortestContract),
        "completion" => Ok(LeafOrder::Completion),
        _ => Err(format!("\"{text}\": expected priority, fifo, shortest-contract or completion")),
    }
}

/// An order's name.
pub(super) fn order_name(order: LeafOrder) -> &'static str {
    match order {
        LeafOrder::Priority => "priority",
        LeafOrder::Fifo => "fifo",
        LeafOrder::ShortestContract => "shortest-contract",
        LeafOrder::Completion => "completion",
    }
}

fn percent(share: Ppm) -> String {
    format!("{} %", f64::from(share.0) / 10_000.0)
}

fn cap<T: std::fmt::Display>(cap: Option<T>) -> String {
    cap.map_or("none".into(), |cap| cap.to_string())
}

fn gpus(max: Option<Gpus>) -> String {
    cap(max.map(|max| max.0))
}
