//! The same policies written once more, as slow and plain as they can be: every node and every waiting job is looked at, every time.

use crate::driver::Job;
use std::collections::BTreeSet;
use stipend_core::quantity::Time;
use stipend_core::spec::{Gang, NodeSpec};

/// What to do with work that cannot start when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Everybody behind it waits.
    Fifo,
    /// It gets nodes for later, and others go first if they cannot delay it.
    Easy,
    /// Others go first.
    SkipAhead,
}

/// GPUs taken: node and how many.
type Taken = Vec<(usize, u32)>;

struct Running {
    job: usize,
    ends: Time,
    expected: Time,
    taken: Taken,
}

struct Slow<'a> {
    order: Order,
    nodes: &'a [NodeSpec],
    jobs: &'a [Job],
    free: Vec<u32>,
    waiting: Vec<usize>,
    running: Vec<Running>,
    starts: Vec<Option<Time>>,
}

/// When each job starts.
pub(crate) fn start_times(order: Order, nodes: &[NodeSpec], jobs: &[Job]) -> Vec<Option<Time>> {
    let free = nodes.iter().map(|n| n.gpus).collect();
    let mut slow = Slow { order, nodes, jobs, free, waiting: Vec::new(), running: Vec::new(), starts: vec![None; jobs.len()] };
    let mut instants: BTreeSet<Time> = jobs.iter().map(|j| j.submit).collect();
    while let Some(now) = instants.pop_first() {
        for lease in slow.running.extract_if(.., |lease| lease.ends == now) {
            lease.taken.iter().for_each(|&(node, gpus)| slow.free[node] += gpus);
        }
        slow.waiting.extend((0..jobs.len()).filter(|&job| jobs[job].submit == now));
        slow.decide(now);
        instants.extend(slow.running.iter().map(|lease| lease.ends));
    }
    slow.starts
}

impl Slow<'_> {
    fn decide(&mut self, now: Time) {
        while let Some(taken) = self.waiting.first().and_then(|&head| self.place(&self.free, &self.jobs[head].gang, &|_| 0)) {
            self.start(now, self.waiting[0], taken);
        }
        match self.order {
            Order::Fifo => {}
            Order::SkipAhead => {
                for job in self.waiting.clone() {
                    if let Some(taken) = self.place(&self.free, &self.jobs[job].gang, &|_| 0) {
                        self.start(now, job, taken);
                    }
                }
            }
            Order::Easy => self.backfill(now),
        }
    }

    fn backfill(&mut self, now: Time) {
        let Some(&head) = self.waiting.first() else { return };
        let (from, reserved, mut later) = self.reserve(&self.jobs[head].gang);
        for &(node, gpus) in &reserved {
            later[node] -= gpus;
        }
        for job in self.waiting.clone() {
            let gang = self.jobs[job].gang;
            let over_in_time = now + self.jobs[job].time_limit <= from;
            let is_reserved = |node: usize| reserved.iter().any(|&(n, _)| n == node);
            let open = (0..self.nodes.len()).map(|n| if is_reserved(n) { self.free[n].min(later[n]) } else { self.free[n] });
            let open: Vec<u32> = open.collect();
            let within = if over_in_time { &self.free } else { &open };
            let Some(taken) = self.place(within, &gang, &|_| 0) else { continue };
            if !over_in_time {
                taken.iter().for_each(|&(node, gpus)| later[node] -= gpus.min(later[node]));
            }
            self.start(now, job, taken);
        }
    }

    /// When and where the gang is sure to fit, and what is free on all nodes then.
    fn reserve(&self, gang: &Gang) -> (Time, Taken, Vec<u32>) {
        let instants: BTreeSet<Time> = self.running.iter().map(|lease| lease.expected).collect();
        for instant in instants {
            let mut later = self.free.clone();
            for lease in self.running.iter().filter(|lease| lease.expected <= instant) {
                lease.taken.iter().for_each(|&(node, gpus)| later[node] += gpus);
            }
            if let Some(taken) = self.place(&later, gang, &|node| self.free[node]) {
                return (instant, taken, later);
            }
        }
        panic!("everything fits on the empty pool");
    }

    fn start(&mut self, now: Time, job: usize, taken: Taken) {
        self.waiting.retain(|&waiting| waiting != job);
        taken.iter().for_each(|&(node, gpus)| self.free[node] -= gpus);
        self.starts[job] = Some(now);
        self.running.push(Running { job, ends: now + self.jobs[job].run, expected: now + self.jobs[job].time_limit, taken });
        debug_assert!(self.running.iter().filter(|lease| lease.job == job).count() == 1);
    }

    /// One block that can take the rest, the best one; as long as there is none, all of the block with the most room.
    fn place(&self, free: &[u32], gang: &Gang, cost: &dyn Fn(usize) -> u32) -> Option<Taken> {
        let size = gang.gpus_per_member;
        let mut blocks: BTreeSet<u32> = self.nodes.iter().map(|n| n.block.0).collect();
        let of = |block: u32| (0..free.len()).filter(move |&n| self.nodes[n].block.0 == block && free[n] >= size);
        let room = |block: u32| of(block).map(|n| free[n] / size).sum::<u32>();
        let mut left = gang.members;
        let mut taken = Taken::new();
        loop {
            let enough = blocks.iter().filter(|&&block| room(block) >= left);
            let best = enough.map(|&block| self.fill(of(block).collect(), free, size, left, cost)).min_by_key(|(key, _)| *key);
            if let Some((_, last)) = best {
                taken.extend(last);
                return Some(taken);
            }
            let roomiest = blocks.iter().copied().rev().max_by_key(|&block| room(block))?;
            blocks.remove(&roomiest);
            left -= room(roomiest);
            taken.extend(of(roomiest).map(|n| (n, free[n] / size * size)));
        }
    }

    /// Nodes in use before wholly free ones, then the tightest, then by number; the last one for what is then left.
    fn fill(
        &self,
        mut nodes: Vec<usize>,
        free: &[u32],
        size: u32,
        mut left: u32,
        cost: &dyn Fn(usize) -> u32,
    ) -> ((u32, u32, u32, usize), Taken) {
        let mut sum = (0, 0, 0, usize::MAX);
        let mut taken = Taken::new();
        while left > 0 {
            let key = |n: usize, members: u32| (cost(n), u32::from(free[n] == self.nodes[n].gpus), free[n] - members * size, n);
            let full = |n: usize| free[n] / size;
            let mut best = *nodes.iter().min_by_key(|&&n| key(n, full(n))).expect("the block has room");
            if full(best) >= left {
                best = *nodes.iter().filter(|&&n| full(n) >= left).min_by_key(|&&n| key(n, left)).expect("one of them has room");
            }
            let members = full(best).min(left);
            let (cost, whole, over, node) = key(best, members);
            sum = (sum.0 + cost, sum.1 + whole, sum.2 + over, sum.3.min(node));
            taken.push((best, members * size));
            left -= members;
            nodes.retain(|&n| n != best);
        }
        (sum, taken)
    }
}

/// EASY that knows no nodes, only how many GPUs are free, over the whole queue at every event: what the literature describes.
pub(crate) fn easy_by_counts(gpus: u32, jobs: &[Job]) -> Vec<Option<Time>> {
    let mut starts = vec![None; jobs.len()];
    let mut free = gpus;
    let (mut waiting, mut running): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut instants: BTreeSet<Time> = jobs.iter().map(|j| j.submit).collect();
    while let Some(now) = instants.pop_first() {
        let size = |job: usize| jobs[job].gang.gpus().0;
        let over: Vec<usize> = running.extract_if(.., |job| starts[*job] == Some(now - jobs[*job].run)).collect();
        free += over.into_iter().map(size).sum::<u32>();
        waiting.extend((0..jobs.len()).filter(|&job| jobs[job].submit == now));
        let mut reserved: Option<(Time, u32)> = None;
        for job in waiting.clone() {
            let over_in_time = reserved.is_some_and(|(from, _)| now + jobs[job].time_limit <= from);
            let extra = reserved.map_or(u32::MAX, |(_, extra)| extra);
            if size(job) <= free && (over_in_time || size(job) <= extra) {
                free -= size(job);
                starts[job] = Some(now);
                waiting.retain(|&other| other != job);
                running.push(job);
                instants.insert(now + jobs[job].run);
                reserved = reserved.map(|(from, extra)| (from, if over_in_time { extra } else { extra - size(job) }));
            } else if reserved.is_none() {
                let expected = |other: &usize| starts[*other].expect("it runs") + jobs[*other].time_limit;
                let free_at = |at: Time| free + running.iter().filter(|r| expected(r) <= at).map(|&r| size(r)).sum::<u32>();
                let from = running.iter().map(expected).filter(|&at| free_at(at) >= size(job)).min().expect("it fits on the empty pool");
                reserved = Some((from, free_at(from) - size(job)));
            }
        }
    }
    starts
}
