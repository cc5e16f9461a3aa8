//! What each budget asks for as time goes on, so that it is known what of its entitlement it did not ask for.
//!
//! Demand is charged GPUs of allocated work that holds GPUs or has them held for it, and of work that may start and is held back by no cap
//! of its own or of an ancestor. A start changes nobody's demand, so most changes are a submission or an end: one addition a budget of the
//! leaf's line. Where there are caps, what they leave room for is counted anew below the topmost of them.

use crate::quantity::{Gpus, Time};
use crate::window::{GPU, Rate};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// No cap on the way to the root.
const NO_CAP: i64 = i64::MAX;

/// One budget's demand. A user's account has an empty one.
#[derive(Clone, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Meter {
    parent: Option<usize>,
    children: Vec<usize>,
    /// The most charged GPUs that its allocated work may hold.
    cap: Option<i64>,
    /// Charged GPUs held in its subtree.
    held: i64,
    /// Charged GPUs waiting in its subtree that no cap holds back.
    ready: i64,
    /// A leaf's waiting gangs: how many of each size, and their charged GPUs together.
    sizes: BTreeMap<u32, u32>,
    waiting: i64,
    /// What it is entitled to.
    entitled: Rate,
    since: Time,
    /// What it was entitled to and did not ask for since the last full hour, in rate · ms.
    unasked: i128,
}

impl Meter {
    fn advance(&mut self, to: Time) {
        let unasked = i128::from(self.entitled) - i128::from(self.held + self.ready) * i128::from(GPU);
        self.unasked += unasked.max(0) * i128::from((to - self.since).0);
        self.since = to;
    }

    /// What of a leaf's waiting work could start with `room` GPUs left under its tightest cap.
    fn fitting(&self, room: i64) -> i64 {
        if self.waiting <= room {
            return self.waiting;
        }
        let fits = self.sizes.iter().take_while(|(size, _)| i64::from(**size) <= room);
        fits.map(|(size, count)| i64::from(*size) * i64::from(*count)).sum::<i64>().min(room)
    }
}

/// A budget's place in the tree, by the numbers of accounts.
pub(crate) struct Place {
    pub account: usize,
    pub parent: Option<usize>,
    pub cap: Option<Gpus>,
    pub entitled: Rate,
}

/// The demand of all budgets of one pool.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Demand {
    /// By account.
    meters: Vec<Meter>,
    root: usize,
    now: Time,
}

impl Demand {
    pub(crate) fn new(now: Time) -> Demand {
        Demand { meters: Vec::new(), root: 0, now }
    }

    /// Time goes on; what changes from here on changes now.
    pub(crate) fn pass(&mut self, now: Time) {
        self.now = now;
    }

    pub(crate) fn add_account(&mut self) {
        self.meters.push(Meter { since: self.now, ..Meter::default() });
    }

    /// The tree as it is from now on, parents before children.
    pub(crate) fn set_tree(&mut self, places: &[Place]) {
        for place in places {
            self.set_entitled(place.account, place.entitled);
            let meter = &mut self.meters[place.account];
            meter.cap = place.cap.map(|cap| i64::from(cap.0));
            meter.children.clear();
            meter.parent = place.parent;
            match place.parent {
                Some(parent) => self.meters[parent].children.push(place.account),
                None => self.root = place.account,
            }
        }
        self.settle(self.root, NO_CAP);
    }

    /// What a budget is entitled to from now on.
    pub(crate) fn set_entitled(&mut self, account: usize, entitled: Rate) {
        self.meters[account].advance(self.now);
        self.meters[account].entitled = entitled;
    }

    /// A gang waits in a leaf, given with its ancestors (`sign` = 1), or no longer (−1).
    pub(crate) fn wait(&mut self, line: &[usize], charged: Gpus, sign: i64) {
        let leaf = &mut self.meters[line[0]];
        let count = leaf.sizes.entry(charged.0).or_default();
        *count = (i64::from(*count) + sign) as u32;
        if *count == 0 {
            leaf.sizes.remove(&charged.0);
        }
        leaf.waiting += sign * i64::from(charged.0);
        self.changed(line, 0);
    }

    /// So many charged GPUs more (or fewer) are held in a leaf.
    pub(crate) fn hold(&mut self, line: &[usize], gpus: i64) {
        self.changed(line, gpus);
    }

    fn changed(&mut self, line: &[usize], held: i64) {
        let mut top = 0;
        for (place, account) in line.iter().enumerate() {
            let meter = &mut self.meters[*account];
            meter.advance(self.now);
            meter.held += held;
            top = if meter.cap.is_some() { place } else { top };
        }
        // What is charged to the ancestors that its leaf had: caps there and here may have other room now.
        if line.windows(2).any(|pair| self.meters[pair[0]].parent != Some(pair[1])) {
            self.settle(self.root, NO_CAP);
            return;
        }
        // Below the topmost cap room is shared: what one leaf holds may hold back another's work.
        let before = self.meters[line[top]].ready;
        let more = self.settle(line[top], NO_CAP) - before;
        line[top + 1..].iter().for_each(|account| self.meters[*account].ready += more);
    }

    /// Counts anew what is ready in a subtree, with so much room under the caps above it.
    fn settle(&mut self, account: usize, room_above: i64) -> i64 {
        let meter = &mut self.meters[account];
        meter.advance(self.now);
        let room = meter.cap.map_or(room_above, |cap| room_above.min((cap - meter.held).max(0)));
        let ready = if meter.children.is_empty() {
            meter.fitting(room)
        } else {
            let children = std::mem::take(&mut meter.children);
            let ready = children.iter().map(|child| self.settle(*child, room)).sum::<i64>().min(room);
            self.meters[account].children = children;
            ready
        };
        self.meters[account].ready = ready;
        ready
    }

    /// A budget's own cap.
    pub(crate) fn cap(&self, account: usize) -> Option<Gpus> {
        self.meters[account].cap.map(|cap| Gpus(cap as u32))
    }

    /// An hour is over: what a budget was entitled to in it and did not ask for, in rate · ms.
    pub(crate) fn take_unasked(&mut self, account: usize) -> i128 {
        let meter = &mut self.meters[account];
        meter.advance(self.now);
        std::mem::take(&mut meter.unasked)
    }

    /// Feeds what it means at `at`.
    pub(crate) fn hash_at<H: Hasher>(&self, at: Time, state: &mut H) {
        for meter in &self.meters {
            let mut meter = meter.clone();
            meter.advance(at);
            meter.hash(state);
        }
    }
}
