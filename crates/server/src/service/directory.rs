//! What numbers are called, and who may do what in the tree.

use crate::store::{Kind, People};
use crate::wire::error::{Code, Problem};
use crate::wire::token::Role;
use std::collections::{BTreeMap, HashMap};
use stipend_core::budget::{Budget, BudgetTree};
use stipend_core::explain::Names;
use stipend_core::id::{BudgetId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::quantity::Time;
use stipend_core::spec::Features;
use stipend_sim::scenario::nearest;

use super::Who;

/// All users, where a budget's people are listed.
const EVERYBODY: &str = "*";

/// Names of one kind by number, and numbers by name.
#[derive(Clone, Default)]
struct Table {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

/// Names and people.
#[derive(Clone, Default)]
pub(crate) struct Directory {
    tables: [Table; 5],
    people: BTreeMap<BudgetId, People>,
    /// Names that are not on disk yet.
    fresh: Vec<(Kind, u32, String)>,
}

impl Directory {
    /// As it was kept.
    pub(crate) fn new(names: Vec<(Kind, u32, String)>, people: Vec<(u32, People)>) -> Directory {
        let mut directory = Directory::default();
        for (kind, number, name) in names {
            directory.tables[kind as usize].put(number, name);
        }
        directory.people = people.into_iter().map(|(budget, people)| (BudgetId(budget), people)).collect();
        directory
    }

    /// The number of a name, a new one if it has none yet.
    pub(crate) fn number(&mut self, kind: Kind, name: &str) -> u32 {
        let table = &mut self.tables[kind as usize];
        if let Some(number) = table.numbers.get(name) {
            return *number;
        }
        let number = table.names.len() as u32;
        table.put(number, name.into());
        self.fresh.push((kind, number, name.into()));
        number
    }

    /// The number of a name that is known.
    pub(crate) fn find(&self, kind: Kind, name: &str) -> Option<u32> {
        self.tables[kind as usize].numbers.get(name).copied()
    }

    /// The name of a number.
    pub(crate) fn name(&self, kind: Kind, number: u32) -> &str {
        self.tables[kind as usize].names.get(number as usize).map_or("", String::as_str)
    }

    /// All names of a kind, by number.
    pub(crate) fn names(&self, kind: Kind) -> &[String] {
        &self.tables[kind as usize].names
    }

    /// Names since the last call.
    pub(crate) fn take_fresh(&mut self) -> Vec<(Kind, u32, String)> {
        std::mem::take(&mut self.fresh)
    }

    /// Who manages a budget and who submits to it.
    pub(crate) fn people(&self, budget: BudgetId) -> People {
        self.people.get(&budget).cloned().unwrap_or_default()
    }

    /// Sets them.
    pub(crate) fn set_people(&mut self, budget: BudgetId, people: People) {
        self.people.insert(budget, people);
    }

    /// The node of this name.
    pub(crate) fn node(&self, name: &str) -> Result<NodeId, Problem> {
        self.find(Kind::Node, name).map(NodeId).ok_or_else(|| self.unknown("node", name, self.names(Kind::Node).iter().map(String::as_str)))
    }

    /// The pool of this name.
    pub(crate) fn pool(&self, name: &str) -> Result<PoolId, Problem> {
        let found = self.find(Kind::Pool, name).map(|number| PoolId(number as u16));
        found.ok_or_else(|| self.unknown("pool", name, self.names(Kind::Pool).iter().map(String::as_str)))
    }

    /// The bits of these features.
    pub(crate) fn features(&self, names: &[String]) -> Result<Features, Problem> {
        let known = || self.names(Kind::Feature).iter().map(String::as_str);
        let bit = |name: &String| self.find(Kind::Feature, name).ok_or_else(|| self.unknown("feature", name, known()));
        names.iter().try_fold(Features(0), |bits, name| Ok(Features(bits.0 | 1 << bit(name)?)))
    }

    /// The budget of this path.
    pub(crate) fn budget<'t>(&self, tree: &'t BudgetTree, path: &str) -> Result<&'t Budget, Problem> {
        let found = tree.top_down().find(|budget| budget.path == path);
        found.ok_or_else(|| self.unknown("budget", path, tree.top_down().map(|budget| budget.path.as_str())))
    }

    fn unknown<'n>(&self, what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> Problem {
        let known: Vec<&str> = known.collect();
        let near = match nearest(name, &known) {
            Some(near) => format!("did you mean {near}?"),
            None if known.is_empty() => format!("there is no {what} yet"),
            None => {
                let more = if known.len() > 8 { format!(" and {} more", known.len() - 8) } else { String::new() };
                format!("there are {}{more}", known[..known.len().min(8)].join(", "))
            }
        };
        Problem::new(Code::NotFound, format!("there is no {what} `{name}`")).hint(near)
    }

    /// Whether a user may submit to this budget: a member or manager of it or above.
    pub(crate) fn may_submit(&self, who: &Who, budget: &Budget) -> Result<(), Problem> {
        let listed = |id: &BudgetId| self.people.get(id).is_some_and(|people| lists(&people.members, who) || lists(&people.managers, who));
        if who.role == Role::Admin || who.role == Role::User && budget.line.iter().any(listed) {
            return Ok(());
        }
        let message = format!("{} is no member of {} nor of a budget above it", who.user, budget.path);
        Err(Problem::new(Code::Forbidden, message).hint(self.who_could(budget)))
    }

    /// Whether a user manages this budget: named by one above it.
    pub(crate) fn may_manage(&self, who: &Who, budget: &Budget) -> Result<(), Problem> {
        if who.role == Role::Admin || who.role == Role::User && budget.line[1..].iter().any(|id| self.manages(who, *id)) {
            return Ok(());
        }
        let message = format!("{} manages no budget above {}; managers change descendants only", who.user, budget.path);
        Err(Problem::new(Code::Forbidden, message).hint(self.who_could(budget)))
    }

    /// Whether a user is named a manager by this very budget or one above it.
    pub(crate) fn may_manage_below(&self, who: &Who, budget: &Budget) -> Result<(), Problem> {
        if who.role == Role::Admin || who.role == Role::User && budget.line.iter().any(|id| self.manages(who, *id)) {
            return Ok(());
        }
        let message = format!("{} manages neither {} nor a budget above it", who.user, budget.path);
        Err(Problem::new(Code::Forbidden, message).hint(self.who_could(budget)))
    }

    fn manages(&self, who: &Who, budget: BudgetId) -> bool {
        self.people.get(&budget).is_some_and(|people| lists(&people.managers, who))
    }

    /// Who could give a right on a budget.
    fn who_could(&self, budget: &Budget) -> String {
        let managers: Vec<&str> =
            budget.line.iter().filter_map(|id| self.people.get(id)).flat_map(|people| people.managers.iter().map(String::as_str)).collect();
        match managers[..] {
            [] => "an administrator can change that".into(),
            _ => format!("its managers can change that: {}; or an administrator", managers.join(", ")),
        }
    }
}

fn lists(people: &[String], who: &Who) -> bool {
    people.iter().any(|name| *name == who.user || name == EVERYBODY)
}

impl Table {
    fn put(&mut self, number: u32, name: String) {
        let index = number as usize;
        if self.names.len() <= index {
            self.names.resize(index + 1, String::new());
        }
        self.numbers.insert(name.clone(), number);
        self.names[index] = name;
    }
}

/// The names as the core's sentences and the event log use them.
pub(crate) struct Labels<'a> {
    pub(crate) directory: &'a Directory,
    pub(crate) tree: &'a BudgetTree,
}

impl Names for Labels<'_> {
    fn budget(&self, id: BudgetId) -> String {
        self.tree.get(id).map_or_else(|| id.to_string(), |budget| budget.path.clone())
    }
    fn workload(&self, id: WorkloadId) -> String {
        id.to_string()
    }
    fn node(&self, id: NodeId) -> String {
        self.directory.name(Kind::Node, id.0).into()
    }
    fn pool(&self, id: PoolId) -> String {
        self.directory.name(Kind::Pool, u32::from(id.0)).into()
    }
    fn user(&self, id: UserId) -> String {
        self.directory.name(Kind::User, id.0).into()
    }
    fn time(&self, at: Time) -> String {
        moment(at)
    }
}

/// A time in the machine's time zone, to the second: `2026-11-30 14:05:09`.
pub(super) fn moment(at: Time) -> String {
    let Ok(timestamp) = jiff::Timestamp::from_millisecond(at.0) else { return format!("{} ms", at.0) };
    timestamp.to_zoned(jiff::tz::TimeZone::system()).strftime("%F %T").to_string()
}
