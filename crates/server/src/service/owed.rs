//! What budgets are owed, hour by hour: at each moment the lesser of claim × capacity and demand, summed between looks at the state.
//!
//! A look costs about as much as there are workloads and budgets, so they are at least [`EVERY`] (or, with many workloads, [`EVERY_MANY`])
//! apart: what comes and goes between two looks is not seen. Time in which nobody decided is owed to nobody.

use super::Service;
use crate::store::Kind;
use crate::wire::workload::{State, Workload};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use stipend_core::budget::{Budget, BudgetTree};
use stipend_core::id::{BudgetId, PoolId};
use stipend_core::quantity::{Claim, Span, Time};

const EVERY: Span = Span::seconds(1);
const EVERY_MANY: Span = Span::seconds(10);

/// More workloads are many.
const MANY: usize = 2_000;

/// What is summed is written down so often.
const WRITE_EVERY: Span = Span::minutes(1);

/// Where an hour is kept among the service's own values.
const PREFIX: &str = "owed/";

/// A pool and a budget by number.
type Place = (u16, u32);

/// GPU-milliseconds that were owed, and what is owed now.
pub(super) struct Owed {
    /// By hour since 1970, in millionths of a GPU-millisecond.
    hours: BTreeMap<i64, BTreeMap<Place, i64>>,
    changed: BTreeSet<i64>,
    written: Time,
    /// Up to when it is summed.
    since: Time,
    looked: Time,
    /// Something changed since it was looked.
    stale: bool,
    many: bool,
    /// In millionths of a GPU.
    rates: Vec<(Place, i64)>,
}

impl Owed {
    /// As it was kept.
    pub(super) fn new(now: Time, values: &[(String, String)]) -> Owed {
        let hour = |(key, value): &(String, String)| {
            let hour = key.strip_prefix(PREFIX)?.parse().ok()?;
            let places: Vec<(u16, u32, i64)> = serde_json::from_str(value).ok()?;
            Some((hour, places.into_iter().map(|(pool, budget, sum)| ((pool, budget), sum)).collect()))
        };
        Owed {
            hours: values.iter().filter_map(hour).collect(),
            changed: BTreeSet::new(),
            written: now,
            since: now,
            looked: Time(0),
            stale: true,
            many: false,
            rates: Vec::new(),
        }
    }

    /// When the state is to be looked at: soon if it changed, and now and then while something is owed, so that it is written down.
    pub(super) fn due(&self) -> Option<Time> {
        match (self.stale, self.many) {
            (true, false) => Some(self.looked + EVERY),
            (true, true) => Some(self.looked + EVERY_MANY),
            (false, _) => (!self.rates.is_empty()).then_some(self.looked + WRITE_EVERY),
        }
    }

    /// Something changed that may change what is owed.
    pub(super) fn touch(&mut self) {
        self.stale = true;
    }

    /// Nobody decided until now.
    pub(super) fn skip(&mut self, now: Time) {
        self.since = now;
    }

    /// What was owed from then on and until now, each hour by itself.
    fn sum(&mut self, now: Time) {
        let hour_ms = Span::hours(1).0;
        while self.since < now {
            let hour = self.since.0.div_euclid(hour_ms);
            let end = Time(now.0.min((hour + 1) * hour_ms));
            let ms = (end - self.since).0;
            if !self.rates.is_empty() {
                let sums = self.hours.entry(hour).or_default();
                self.rates.iter().for_each(|(place, rate)| *sums.entry(*place).or_default() += rate * ms);
                self.changed.insert(hour);
            }
            self.since = end;
        }
    }

    /// Hours to be written down.
    pub(super) fn take_changed(&mut self, now: Time) -> Vec<(String, String)> {
        if now - self.written < WRITE_EVERY {
            return Vec::new();
        }
        self.written = now;
        let value = |hour: i64| {
            let places: Vec<(u16, u32, i64)> = self.hours[&hour].iter().map(|((pool, budget), sum)| (*pool, *budget, *sum)).collect();
            (format!("{PREFIX}{hour}"), serde_json::to_string(&places).expect("numbers"))
        };
        std::mem::take(&mut self.changed).into_iter().map(value).collect()
    }
}

/// What was owed to a budget in a pool in one hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwedHour {
    /// When it begins.
    pub hour_ms: i64,
    /// The pool's number.
    pub pool: u16,
    /// The budget's number.
    pub budget: u32,
    /// GPU-milliseconds.
    pub gpu_ms: i64,
}

/// What a budget's allocated work holds and asks for in a pool.
#[derive(Default)]
struct Demand {
    running: i64,
    /// Waiting gangs: how many of each size.
    sizes: BTreeMap<u32, u32>,
}

impl Demand {
    fn add(&mut self, view: &Workload) {
        let gpus = view.members * view.gpus_per_member;
        if view.state.is_leased() && view.allocated {
            self.running += i64::from(gpus);
        } else if view.state == State::Waiting && view.min_runtime_ms > 0 {
            *self.sizes.entry(gpus).or_default() += 1;
        }
    }

    /// What of the waiting work could start with so much room under the caps.
    fn fitting(&self, room: i64) -> i64 {
        let fits = self.sizes.iter().take_while(|(size, _)| i64::from(**size) <= room);
        fits.map(|(size, count)| i64::from(*size) * i64::from(*count)).sum::<i64>().min(room)
    }
}

impl Service {
    /// Sums up what was owed until now; looks what is owed from now on, if that is due.
    pub(super) fn meter_owed(&mut self) {
        self.owed.sum(self.now);
        if self.owed.due().is_some_and(|due| due <= self.now) {
            self.owed.rates = self.owed_now();
            (self.owed.looked, self.owed.stale, self.owed.many) = (self.now, false, self.live.len() > MANY);
        }
    }

    fn owed_now(&self) -> Vec<(Place, i64)> {
        let tree = self.scheduler.tree();
        let leaves: HashMap<&str, u32> = tree.top_down().map(|budget| (budget.path.as_str(), budget.spec.id.0)).collect();
        let mut demands: HashMap<Place, Demand> = HashMap::new();
        for view in self.live.iter().map(|live| &live.view) {
            let (Some(budget), Some(pool)) = (leaves.get(view.budget.as_str()), self.directory.find(Kind::Pool, &view.pool)) else {
                continue;
            };
            demands.entry((pool as u16, *budget)).or_default().add(view);
        }
        let pools = self.directory.names(Kind::Pool);
        let rates = |number: usize| owed_in(tree, PoolId(number as u16), self.capacity(&pools[number]), &demands);
        (0..pools.len()).flat_map(rates).collect()
    }

    /// GPUs of ready nodes, and those under lease on draining ones.
    fn capacity(&self, pool: &str) -> i64 {
        let of = |state: &'static str| self.nodes.iter().map(|(_, node)| node).filter(move |node| node.pool == pool && node.state == state);
        let draining: BTreeSet<&str> = of("draining").map(|node| node.name.as_str()).collect();
        let leased = self.live.iter().filter(|live| !draining.is_empty() && live.view.state.is_leased());
        let kept = leased.flat_map(|live| live.view.placement.iter()).filter(|(node, _)| draining.contains(node.as_str()));
        of("ready").map(|node| i64::from(node.gpus)).sum::<i64>() + kept.map(|(_, gpus)| gpus.len() as i64).sum::<i64>()
    }

    /// What was owed in the hours that begin in a period.
    pub(crate) fn owed(&self, from_ms: i64, to_ms: i64) -> Vec<OwedHour> {
        let hour_ms = Span::hours(1).0;
        let hours = self.owed.hours.iter().filter(|(hour, _)| (from_ms..to_ms).contains(&(**hour * hour_ms)));
        let places = |(hour, places): (&i64, &BTreeMap<Place, i64>)| {
            let hour_ms = hour * hour_ms;
            let of = |(&(pool, budget), &sum): (&Place, &i64)| OwedHour { hour_ms, pool, budget, gpu_ms: sum / 1_000_000 };
            places.iter().map(of).collect::<Vec<_>>()
        };
        hours.flat_map(places).collect()
    }
}

/// What each budget is owed in a pool, in millionths of a GPU.
fn owed_in(tree: &BudgetTree, pool: PoolId, capacity: i64, demands: &HashMap<Place, Demand>) -> Vec<(Place, i64)> {
    let none = Demand::default();
    let demand = |budget: &Budget| demands.get(&(pool.0, budget.spec.id.0)).unwrap_or(&none);
    let mut running: HashMap<BudgetId, i64> = HashMap::new();
    for budget in tree.top_down() {
        budget.line.iter().for_each(|id| *running.entry(*id).or_default() += demand(budget).running);
    }
    // Under its own cap and those above it.
    let mut room: HashMap<BudgetId, i64> = HashMap::new();
    for budget in tree.top_down() {
        let above = budget.line.get(1).map_or(i64::MAX, |parent| room[parent]);
        let own = budget.share(pool).gpus_max.map_or(i64::MAX, |cap| (i64::from(cap.0) - running[&budget.spec.id]).max(0));
        room.insert(budget.spec.id, above.min(own));
    }
    let bottom_up: Vec<&Budget> = tree.top_down().collect::<Vec<_>>().into_iter().rev().collect();
    let (mut ready, mut owed) = (HashMap::<BudgetId, i64>::new(), Vec::new());
    for budget in bottom_up {
        let id = budget.spec.id;
        let below = ready.get(&id).copied().unwrap_or(0);
        let fits = below.saturating_add(demand(budget).fitting(room[&id])).min(room[&id]);
        if let Some(parent) = budget.line.get(1) {
            *ready.entry(*parent).or_default() += fits;
        }
        let demand = i128::from(running[&id] + fits) * 1_000_000;
        let claim = i128::from(budget.claim(pool).0) * i128::from(capacity) * 1_000_000 / i128::from(Claim::WHOLE.0);
        owed.push(((pool.0, id.0), i64::try_from(claim.min(demand)).unwrap_or(i64::MAX)));
    }
    owed.retain(|(_, rate)| *rate > 0);
    owed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_summed_exactly_and_read_again_as_they_were() {
        let minute = Span::minutes(1).0;
        let mut owed = Owed::new(Time(30 * minute), &[]);
        owed.rates = vec![((0, 3), 2_500_000)];
        owed.sum(Time(90 * minute));
        assert_eq!(owed.hours[&0][&(0, 3)], 2_500_000 * 30 * minute);
        assert_eq!(owed.hours[&1][&(0, 3)], 2_500_000 * 30 * minute);
        assert_eq!(owed.take_changed(Time(30 * minute)), []);
        let kept = owed.take_changed(Time(90 * minute));
        assert_eq!(kept.len(), 2);
        let mut again = Owed::new(Time(90 * minute), &kept);
        assert_eq!(again.hours, owed.hours);
        // Of time in which nobody decided nothing is owed.
        again.rates = vec![((0, 3), 1)];
        again.skip(Time(300 * minute));
        again.sum(Time(301 * minute));
        assert_eq!(again.hours.keys().copied().collect::<Vec<_>>(), [0, 1, 5]);
    }

    #[test]
    fn demand_is_what_the_room_under_the_caps_lets_start() {
        let demand = Demand { running: 0, sizes: [(4, 3), (16, 1)].into() };
        assert_eq!([0, 3, 8, 15, 16, 100].map(|room| demand.fitting(room)), [0, 0, 8, 12, 16, 28]);
    }
}
