//! How long one cycle takes: 10,000 nodes of 8 GPUs, 98 % full, 100,000 workloads waiting, evictions possible.
//!
//! `cargo run --release -p stipend-sim --example cycle [CYCLES]` prints the spread of `apply` + `decide` over single instants, each with one
//! lease that ends and one workload that is submitted, after the cluster was filled and the first protections have ended.

use std::sync::Arc;
use std::time::Instant;
use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Exit};
use stipend_core::id::{BlockId, BudgetId, LeaseId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, Changeset, Features, Gang, LeafOrder, NodeSpec, PoolShare, WorkloadSpec};

const NODES: u32 = 10_000;
const LEAVES: u32 = 200;
const WAITING: u32 = 100_000;
/// Members and GPUs a member, from small to large.
const GANGS: [(u32, u32); 10] = [(1, 1), (1, 1), (1, 2), (1, 4), (1, 8), (1, 8), (2, 8), (4, 8), (16, 8), (64, 8)];
const CONTRACTS: [i64; 4] = [15, 60, 120, 480];

fn main() {
    let cycles = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2000);
    let mut bench = Bench::new();
    bench.fill();
    let took = bench.measure(cycles);
    let at = |part: usize| took[(took.len() * part / 1000).min(took.len() - 1)];
    println!("{NODES} nodes, {} leases, {} live workloads, {cycles} instants", bench.running.len(), bench.scheduler.live_workloads());
    println!("p50 {:.3} ms, p90 {:.3} ms, p99 {:.3} ms, max {:.3} ms", at(500), at(900), at(990), took[took.len() - 1]);
    println!("starts {}, holds {}, preemptions {}", bench.starts, bench.holds, bench.preemptions);
}

struct Bench {
    scheduler: Scheduler,
    log: Vec<Entry>,
    now: Time,
    next: u32,
    running: Vec<LeaseId>,
    random: u64,
    starts: u64,
    holds: u64,
    preemptions: u64,
}

impl Bench {
    fn new() -> Bench {
        let mut scheduler = Scheduler::new(Time(0));
        let mut log = Vec::new();
        let mut tell = |event: Event| scheduler.apply(Time(0), &event, &mut log).expect("a sound set-up");
        tell(Event::KnobsSet { pool: PoolId(0), knobs: Box::new(Knobs::default()) });
        for node in 0..NODES {
            let spec = NodeSpec {
                pool: PoolId(0),
                gpus: 8,
                cpus: 0,
                memory: 0,
                block: BlockId(node / 16),
                features: Features(0),
                express: node < 64,
            };
            tell(Event::NodeJoined { node: NodeId(node), spec });
        }
        let budget = |id: u32, parent: Option<u32>, share: u32| BudgetSpec {
            id: BudgetId(id),
            parent: parent.map(BudgetId),
            name: format!("b{id}"),
            pools: vec![PoolShare { share: Ppm(share), ..PoolShare::default() }],
            order: LeafOrder::Priority,
            closed: false,
        };
        let mut budgets = vec![budget(0, None, 1_000_000)];
        budgets.extend((1..=10).map(|program| budget(program, Some(0), 100_000)));
        budgets.extend((0..LEAVES).map(|leaf| budget(11 + leaf, Some(1 + leaf % 10), 10 * 1_000_000 / LEAVES)));
        tell(Event::BudgetsChanged(Changeset { based_on: 0, author: "bench".into(), reason: String::new(), budgets }));
        log.clear();
        Bench { scheduler, log, now: Time(0), next: 0, running: Vec::new(), random: 1, starts: 0, holds: 0, preemptions: 0 }
    }

    /// Fills the cluster with the work of a few leaves, queues work for all, and lets half of the first contracts end.
    fn fill(&mut self) {
        let gpus_wanted = u64::from(NODES) * 8 * 98 / 100;
        let mut gpus = 0;
        while gpus < gpus_wanted {
            gpus += u64::from(self.submit(20));
            self.decide();
        }
        for _ in 0..WAITING {
            self.submit(LEAVES);
        }
        self.now = self.now + Span::hours(4);
        self.decide();
        // What was told to leave leaves, so that measuring begins in a settled state.
        for _ in 0..50 {
            self.now = self.now + Span::minutes(3);
            self.decide();
        }
    }

    fn measure(&mut self, cycles: usize) -> Vec<f64> {
        let mut took = Vec::with_capacity(cycles);
        for _ in 0..cycles {
            self.now = self.now + Span::seconds(1);
            let ends = self.below(self.running.len() as u64) as usize;
            let lease = self.running.swap_remove(ends);
            let began = Instant::now();
            // A lease that was told to stop meanwhile has been reported already.
            let _ = self.scheduler.apply(self.now, &Event::LeaseEnded { lease, exit: Exit::Completed }, &mut self.log);
            self.submit(LEAVES);
            self.scheduler.decide(self.now, &mut self.log);
            took.push(began.elapsed().as_secs_f64() * 1000.0);
            self.answer();
        }
        took.sort_by(f64::total_cmp);
        took
    }

    fn submit(&mut self, leaves: u32) -> u32 {
        let (members, gpus) = GANGS[self.below(GANGS.len() as u64) as usize];
        let (leaf, user) = (BudgetId(11 + self.below(u64::from(leaves)) as u32), UserId(self.below(5) as u32));
        let contract = Span::minutes(CONTRACTS[self.below(4) as usize]);
        let priority = self.below(3) as i16;
        let spec = WorkloadSpec { priority, ..WorkloadSpec::new(leaf, user, PoolId(0), Gang::new(members, gpus), contract) };
        let workload = WorkloadId(self.next);
        self.next += 1;
        self.scheduler.apply(self.now, &Event::Submitted { workload, spec: Arc::new(spec) }, &mut self.log).expect("sound work");
        members * gpus
    }

    fn decide(&mut self) {
        self.scheduler.decide(self.now, &mut self.log);
        self.answer();
    }

    /// What an engine would report: starts run at once, and who is told to stop has left by the next instant.
    fn answer(&mut self) {
        for entry in std::mem::take(&mut self.log) {
            match entry {
                Entry::Started { lease, .. } => {
                    self.starts += 1;
                    self.running.push(lease);
                    self.tell(Event::LeaseRunning { lease });
                }
                Entry::Stopping { lease, .. } => {
                    self.preemptions += 1;
                    self.running.retain(|running| *running != lease);
                    self.tell(Event::LeaseEnded { lease, exit: Exit::Failed });
                }
                Entry::Hold { .. } => self.holds += 1,
                _ => {}
            }
        }
    }

    fn tell(&mut self, event: Event) {
        self.scheduler.apply(self.now, &event, &mut self.log).expect("a true report");
    }

    /// SplitMix64: a number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}
