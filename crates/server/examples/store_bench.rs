//! How fast the store is: `cargo run --release -p stipend-server --example store_bench [FOLDER]`.
//!
//! It fills a store with 1,000,000 finished and 100,000 waiting workloads in the real core, then measures opening it, lists, and
//! submissions with full sync.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stipend_core::Scheduler;
use stipend_core::event::Event;
use stipend_core::id::{BlockId, BudgetId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, Changeset, Features, Gang, LeafOrder, NodeSpec, PoolShare, WorkloadSpec};
use stipend_server::store::{Batch, Line, Reader, Step, Store, WorkloadRow};
use stipend_server::wire::workload::{Filter, Kind, OnPreempt, State, Submission, Workload};

const FINISHED: u32 = 1_000_000;
const WAITING: u32 = 100_000;
const LEAVES: u32 = 40;
const HOUR: i64 = 3_600_000;

fn main() {
    let folder = std::env::args().nth(1).map_or_else(|| std::env::temp_dir().join("stipend-store-bench"), PathBuf::from);
    let (mut store, restored) = Store::open(&folder).expect("a store");
    if restored.scheduler.is_none() {
        let start = Instant::now();
        fill(&mut store);
        println!("filled in {:.1} s", start.elapsed().as_secs_f64());
    }
    drop((store, restored));
    let (mut store, mut scheduler, mut lines) = open(&folder);
    lists(&Reader::open(&folder).expect("a reader"));
    for size in [1, 10, 100] {
        submit(&mut store, &mut scheduler, &mut lines, size);
    }
    drop((store, scheduler));
    println!("with those to replay:");
    let (mut store, mut scheduler, mut lines) = open(&folder);
    let start = Instant::now();
    let digest = scheduler.digest();
    println!("the digest, {digest:x}, in {:.0} ms", ms(start.elapsed()));
    let start = Instant::now();
    let copy = scheduler.clone();
    println!("the scheduler copied in {:.0} ms", ms(start.elapsed()));
    store.snapshot_aside(copy.now(), &copy).expect("a snapshot");
    submit(&mut store, &mut scheduler, &mut lines, 10);
    store.wait_for_snapshot().expect("a snapshot");
    let start = Instant::now();
    store.snapshot(scheduler.now(), &scheduler).expect("a snapshot");
    println!("a snapshot in {:.0} ms", ms(start.elapsed()));
    drop((store, scheduler, copy));
    open(&folder);
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn open(folder: &Path) -> (Store, Scheduler, u64) {
    let start = Instant::now();
    let (store, restored) = Store::open(folder).expect("a store");
    let taken = start.elapsed();
    let bytes = std::fs::metadata(folder.join("stipend.db")).expect("a file").len();
    let scheduler = restored.scheduler.expect("a scheduler");
    let (live, mib) = (scheduler.live_workloads(), bytes >> 20);
    println!("opened in {:.0} ms: {live} live in the scheduler, {} listed, file of {mib} MiB", ms(taken), restored.live.len());
    (store, scheduler, restored.last_line)
}

fn fill(store: &mut Store) {
    let mut scheduler = Scheduler::new(Time(0));
    store.commit(&Batch { steps: cluster(&mut scheduler), ..Batch::default() }).expect("written");
    let mut lines = 0;
    for from in (0..FINISHED).step_by(10_000) {
        let mut batch = Batch::default();
        for id in from..from + 10_000 {
            for state in [State::Waiting, State::Running, State::Completed] {
                lines += 1;
                batch.lines.push(line(lines, i64::from(id) * 1000, id, state));
            }
            batch.workloads.push(WorkloadRow { view: view(id, State::Completed), submission: Some(submission(id)) });
        }
        store.commit(&batch).expect("written");
    }
    for from in (FINISHED..FINISHED + WAITING).step_by(1000) {
        let batch = submissions(&mut scheduler, &mut lines, from..from + 1000);
        store.commit(&batch).expect("written");
    }
    store.snapshot(scheduler.now(), &scheduler).expect("a snapshot");
}

fn cluster(scheduler: &mut Scheduler) -> Vec<Step> {
    let mut events = vec![Event::KnobsSet { pool: PoolId(0), knobs: Box::new(Knobs::default()) }];
    let budget = |id: u32| BudgetSpec {
        id: BudgetId(id),
        parent: (id > 0).then_some(BudgetId(0)),
        name: format!("b{id}"),
        pools: vec![PoolShare { share: Ppm(if id == 0 { 1_000_000 } else { 1_000_000 / LEAVES }), ..PoolShare::default() }],
        order: LeafOrder::default(),
        closed: false,
    };
    let budgets = (0..=LEAVES).map(budget).collect();
    events.push(Event::BudgetsChanged(Changeset { based_on: 0, author: "ann".into(), reason: "the first".into(), budgets }));
    for node in 0..1000 {
        let block = BlockId(node / 16);
        let spec = NodeSpec { pool: PoolId(0), gpus: 8, cpus: 0, memory: 0, block, features: Features(0), express: false };
        events.push(Event::NodeJoined { node: NodeId(node), spec });
    }
    let at = Time(HOUR);
    events.into_iter().map(|event| tell(scheduler, at, event)).collect()
}

fn tell(scheduler: &mut Scheduler, at: Time, event: Event) -> Step {
    scheduler.apply(at, &event, &mut Vec::new()).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    Step::Event { at, event }
}

/// What a turn of the service writes for so many submissions.
fn submissions(scheduler: &mut Scheduler, lines: &mut u64, ids: std::ops::Range<u32>) -> Batch {
    let (mut batch, at) = (Batch::default(), scheduler.now() + Span(10));
    for id in ids {
        let gang = Gang::new(1 + id % 4, 8 - id % 8);
        let (budget, user) = (BudgetId(1 + id % LEAVES), UserId(id % 400));
        let spec = WorkloadSpec::new(budget, user, PoolId(0), gang, Span::minutes(i64::from(id % 5) * 60)).into();
        batch.steps.push(tell(scheduler, at, Event::Submitted { workload: WorkloadId(id), spec }));
        batch.workloads.push(WorkloadRow { view: view(id, State::Waiting), submission: Some(submission(id)) });
        for state in [State::Held, State::Waiting, State::Starting] {
            *lines += 1;
            batch.lines.push(line(*lines, at.0, id, state));
        }
    }
    batch.steps.push(Step::Plan { at, plan: scheduler.decide(at, &mut Vec::new()) });
    batch
}

/// Five seconds of submissions, so many at once.
fn submit(store: &mut Store, scheduler: &mut Scheduler, lines: &mut u64, size: u32) {
    let next = lines.div_ceil(3) as u32 + 1;
    let (start, mut times, mut done) = (Instant::now(), Vec::new(), 0);
    while start.elapsed() < Duration::from_secs(5) {
        let batch = submissions(scheduler, lines, next + done..next + done + size);
        let written = Instant::now();
        store.commit(&batch).expect("written");
        times.push(written.elapsed());
        done += size;
    }
    let rate = f64::from(done) / start.elapsed().as_secs_f64();
    println!("{size} at once: {rate:.0} submissions/s, a commit {}", percentiles(times));
}

fn lists(reader: &Reader) {
    let some = |text: &str| Some(text.to_owned());
    let filters = [
        ("all live", Filter::default()),
        ("a leaf's live", Filter { budget: some("lab/b7"), ..Filter::default() }),
        ("all budgets' live", Filter { budget: some("lab"), ..Filter::default() }),
        ("a user's, with ended ones", Filter { user: some("user7"), all: true, ..Filter::default() }),
        ("a user's in a budget that is not theirs", Filter { user: some("user7"), budget: some("lab/b1"), all: true, ..Filter::default() }),
        ("running (none)", Filter { state: some("running"), ..Filter::default() }),
        ("completed in a pool (none)", Filter { state: some("completed"), pool: some("other"), ..Filter::default() }),
        ("1000 of all", Filter { all: true, limit: Some(1000), ..Filter::default() }),
    ];
    for (what, filter) in filters {
        let (mut times, mut cursor) = (Vec::new(), None);
        for _ in 0..200 {
            let start = Instant::now();
            let page = reader.workloads(&Filter { cursor, ..filter.clone() }).expect("a page");
            times.push(start.elapsed());
            cursor = page.next;
        }
        println!("list, {what}: {}", percentiles(times));
    }
    let time = |what: &str, read: &dyn Fn(u32)| {
        let times = (0..500).map(|number| {
            let start = Instant::now();
            read(number * 1999);
            start.elapsed()
        });
        println!("{what}: {}", percentiles(times.collect()));
    };
    time("a workload", &|id| _ = reader.workload(id).expect("read").expect("it is there"));
    let of = |workload: u32| stipend_server::store::LineFilter { workload: Some(workload), ..Default::default() };
    time("a workload's lines", &|id| assert_eq!(reader.lines(&of(id), 100).expect("read").len(), 3));
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |part: usize| ms(times[(times.len() - 1) * part / 100]);
    format!("p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms", at(50), at(99), at(100))
}

fn line(seq: u64, t_ms: i64, id: u32, state: State) -> Line {
    let json = format!(
        r#"{{"t_ms":{t_ms},"event":"submitted","workload":{id},"budget":"lab/b{}","user":"user{}","pools":["h100"],"members":1,"gpus_per_member":8,"charged_gpus":8,"min_runtime_ms":3600000,"time_limit_ms":null,"on_preempt":"resume","state":"{state:?}"}}"#,
        id % LEAVES,
        id % 400
    );
    Line { seq, t_ms, event: "submitted".into(), workload: Some(id), json }
}

fn submission(id: u32) -> Submission {
    Submission {
        budget: format!("lab/b{}", id % LEAVES),
        command: ["python", "train.py", "--config", "configs/base.yaml", "--seed"].map(str::to_owned).into(),
        gpus: Some(8),
        on_preempt: OnPreempt::Resume,
        workdir: Some(format!("/srv/user{}/project", id % 400)),
        env: [("WANDB_MODE".to_owned(), "offline".to_owned())].into(),
        ..Submission::default()
    }
}

fn view(id: u32, state: State) -> Workload {
    let ended = state == State::Completed;
    Workload {
        id,
        name: format!("train-{id}"),
        user: format!("user{}", id % 400),
        budget: format!("lab/b{}", id % LEAVES),
        pool: "h100".into(),
        state,
        members: 1,
        gpus_per_member: 8,
        min_runtime_ms: HOUR,
        time_limit_ms: None,
        expected_runtime_ms: None,
        on_preempt: OnPreempt::Resume,
        priority: 0,
        kind: Kind::Batch,
        submitted_ms: i64::from(id) * 1000,
        started_ms: ended.then_some(i64::from(id) * 1000 + 60_000),
        ended_ms: ended.then_some(i64::from(id) * 1000 + 3_660_000),
        protected_until_ms: None,
        allocated: true,
        attempts: u32::from(ended),
        preemptions: 0,
        losses: 0,
        retry_ms: None,
        placement: if ended { [("node7".to_owned(), (0..8).collect())].into() } else { Default::default() },
        exit_code: ended.then_some(0),
        array: None,
        after: Vec::new(),
        held_by: None,
        idle_since_ms: None,
        ran_ms: 0,
        why: (!ended).then(|| "needs 8 GPUs; 3 are within reach, the rest is protected or stands lower".into()),
    }
}
