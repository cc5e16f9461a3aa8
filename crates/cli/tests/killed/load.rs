//! Users who do everything that can be done, and ask again until they are answered.

use crate::daemon::Daemon;
use crate::dice::Dice;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;
use stipend_server::client::{Client, Error};

/// With so much in the queue they wait.
const QUEUE_MAX: usize = 30;

/// A submission that was answered with success.
pub(crate) struct Accepted {
    pub(crate) ids: Vec<u64>,
    pub(crate) exit: u64,
}

pub(crate) struct Load {
    client: Client,
    program: String,
    runs: String,
    /// By key, which is also the name.
    pub(crate) accepted: Mutex<BTreeMap<String, Accepted>>,
    done: [AtomicU64; 6],
    unanswered: AtomicU64,
}

impl Load {
    pub(crate) fn new(daemon: &Daemon) -> Load {
        let text = |name| daemon.path(name).to_str().expect("a path in UTF-8").to_string();
        Load {
            client: daemon.client(),
            program: text("program.sh"),
            runs: text("runs"),
            accepted: Mutex::default(),
            done: Default::default(),
            unanswered: AtomicU64::default(),
        }
    }

    /// What was done, for whoever reads the test's output.
    pub(crate) fn summary(&self) -> String {
        let names = ["submissions", "cancels", "holds", "releases", "budget changes", "drains and resumes"];
        let counts = names.iter().zip(&self.done).map(|(name, count)| format!("{} {name}", count.load(Ordering::Relaxed)));
        format!("{}; {} without an answer at first", counts.collect::<Vec<_>>().join(", "), self.unanswered.load(Ordering::Relaxed))
    }

    /// One user's life, until it is to stop. What was submitted is asked for until it is answered, unless the daemon is lost.
    pub(crate) fn run(&self, user: u64, mut dice: Dice, (stop, lost): (&AtomicBool, &AtomicBool)) {
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            let queue: Option<Value> = self.ask(stop, || self.client.get("/v1/workloads?limit=1000"));
            let live = queue.as_ref().and_then(|page| page["items"].as_array()).map_or(&[][..], Vec::as_slice);
            let one = live.get(dice.upto(live.len().max(1) as u64) as usize).map_or(0, |workload| workload["id"].as_u64().unwrap_or(0));
            match dice.upto(20) {
                0 | 1 => self.change(1, stop, || self.client.delete(&format!("/v1/workloads/{one}"))),
                2 => self.change(2, stop, || self.client.post(&format!("/v1/workloads/{one}/hold"), &Value::Null, &[])),
                3 | 4 => self.change(3, stop, || self.client.post(&format!("/v1/workloads/{one}/release"), &Value::Null, &[])),
                5 => self.budgets(stop, &mut dice),
                6 | 7 => self.nodes(stop, &mut dice),
                _ if live.len() < QUEUE_MAX => {
                    number += 1;
                    self.submit(&format!("u{user}-{number}"), one, &mut dice, lost);
                }
                _ => {}
            }
            sleep(Duration::from_millis(dice.upto(120)));
        }
    }

    /// Asks until there is an answer; `None` where that is a refusal, or nobody is to go on.
    fn ask<T>(&self, stop: &AtomicBool, question: impl Fn() -> Result<T, Error>) -> Option<T> {
        loop {
            match question() {
                Ok(answer) => return Some(answer),
                Err(Error::Problem { status, .. }) if status < 500 => return None,
                Err(_) if stop.load(Ordering::Relaxed) => return None,
                Err(_) => {
                    self.unanswered.fetch_add(1, Ordering::Relaxed);
                    sleep(Duration::from_millis(20));
                }
            }
        }
    }

    fn change(&self, what: usize, stop: &AtomicBool, question: impl Fn() -> Result<Value, Error>) {
        let done = self.ask(stop, question).is_some();
        self.done[what].fetch_add(u64::from(done), Ordering::Relaxed);
    }

    fn budgets(&self, stop: &AtomicBool, dice: &mut Dice) {
        let Some(tree) = self.ask(stop, || self.client.get::<Value>("/v1/budgets")) else { return };
        let budget = match dice.upto(3) {
            0 => json!({"path": "lab/a", "share": 30 + dice.upto(20)}),
            1 => json!({"path": "lab/b", "gpus_max": {"gpu": 4 + dice.upto(12)}}),
            _ => json!({"path": "lab/c", "share": 10 + dice.upto(10), "order": (["fifo", "priority"][dice.upto(2) as usize])}),
        };
        let request = json!({"based_on": tree["version"], "reason": "as they like it", "budgets": [budget]});
        self.change(4, stop, || self.client.patch("/v1/budgets", &request, &[]));
    }

    fn nodes(&self, stop: &AtomicBool, dice: &mut Dice) {
        let node = 1 + dice.upto(4);
        let severity = ["maintenance", "sick", "critical"][dice.upto(3) as usize];
        let drain = json!({"severity": severity, "reason": "a fan is loud"});
        match dice.upto(3) {
            0 if node != 1 => self.change(5, stop, || self.client.post(&format!("/v1/nodes/gpu-{node}/drain"), &drain, &[])),
            _ => self.change(5, stop, || self.client.post(&format!("/v1/nodes/gpu-{node}/resume"), &Value::Null, &[])),
        }
    }

    /// Submits, and asks again with the same key for as long as nobody answers.
    fn submit(&self, key: &str, before: u64, dice: &mut Dice, lost: &AtomicBool) {
        let exit = [0, 0, 0, 3, 7][dice.upto(5) as usize];
        let mut request = json!({"budget": (["lab/a", "lab/b", "lab/c"][dice.upto(3) as usize]), "name": key, "env": {"RUNS": self.runs}});
        let kind = dice.upto(8);
        let more = match kind {
            0 | 1 => json!({"gpus": 1 + dice.upto(4), "on_preempt": "restart"}),
            2 => json!({"gpus": 2, "members": 2, "on_preempt": "resume"}),
            3 => json!({"gpus": 2, "members": 2 + dice.upto(2), "min_runtime": "1m", "on_preempt": "resume"}),
            4 => json!({"gpus": 1 + dice.upto(4), "min_runtime": "1m", "time_limit": "1m", "on_preempt": "end"}),
            5 => json!({"array": "1-4%2", "min_runtime": "1m"}),
            6 if before != 0 => json!({"after": [before], "min_runtime": "1m"}),
            _ => json!({"gpus": 1 + dice.upto(4), "min_runtime": "1m", "priority": dice.upto(3)}),
        };
        let tenths = if kind < 3 { 10 + dice.upto(50) } else { dice.upto(20) };
        let stubborn = if dice.upto(4) == 0 { "stubborn" } else { "" };
        let command = json!(["/bin/sh", self.program, format!("{}.{}", tenths / 10, tenths % 10), exit.to_string(), stubborn]);
        let fields = request.as_object_mut().expect("an object");
        fields.extend(more.as_object().cloned().unwrap_or_default());
        fields.insert("command".into(), command);
        let ask = || self.client.post::<Value, _>("/v1/workloads", &request, &[("idempotency-key", key)]);
        let Some(answer) = self.ask(lost, ask) else {
            // Only what it was to wait for may have ended otherwise.
            assert!(kind == 6 || lost.load(Ordering::Relaxed), "refused: {request}");
            return;
        };
        let workloads = answer["workloads"].as_array().expect("a list");
        let ids = workloads.iter().map(|workload| workload["id"].as_u64().expect("a number")).collect();
        self.accepted.lock().expect("nobody panics").insert(key.into(), Accepted { ids, exit });
        self.done[0].fetch_add(1, Ordering::Relaxed);
    }
}
