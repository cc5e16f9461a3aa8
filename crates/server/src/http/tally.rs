//! What is counted while the daemon runs: from the event log as it grows, and from the requests.

use super::Api;
use super::follow::Follower;
use axum::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabels {
    class: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LicenceLabels {
    licence: String,
}

/// Counts since the daemon's start.
pub(super) struct Tally {
    requests: Family<RequestLabels, Counter>,
    answers: Histogram,
    submitted: Family<ClassLabels, Counter>,
    waits: Family<ClassLabels, Histogram>,
    ended: Family<OutcomeLabels, Counter>,
    preempted: Family<LicenceLabels, Counter>,
    lost: Counter<f64, std::sync::atomic::AtomicU64>,
    broken_promises: Counter,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            requests: Family::default(),
            // 0.5 ms to 16 s.
            answers: Histogram::new(exponential_buckets(0.0005, 2.0, 16)),
            submitted: Family::default(),
            // 1 s to 12 days.
            waits: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1.0, 4.0, 11))),
            ended: Family::default(),
            preempted: Family::default(),
            lost: Counter::default(),
            broken_promises: Counter::default(),
        }
    }
}

impl Tally {
    /// Counts a request.
    pub(super) fn request(&self, method: &Method, status: StatusCode, took: Duration) {
        // Whoever makes up methods does not make up series.
        let method = match *method {
            Method::GET | Method::POST | Method::PATCH | Method::DELETE => method.to_string(),
            _ => "other".into(),
        };
        self.requests.get_or_create(&RequestLabels { method, status: status.as_u16() }).inc();
        self.answers.observe(took.as_secs_f64());
    }

    /// Writes all counts down under their names.
    pub(super) fn register(&self, to: &mut Registry) {
        to.register("http_requests", "Requests", self.requests.clone());
        to.register_with_unit("http_answer", "Time until an answer began", Unit::Seconds, self.answers.clone());
        to.register("workloads_submitted", "Workloads submitted", self.submitted.clone());
        to.register_with_unit("wait", "Time from eligible to running of first attempts, by class", Unit::Seconds, self.waits.clone());
        to.register("attempts_ended", "Attempts and waiting workloads that ended", self.ended.clone());
        to.register("preemptions", "Leases that were taken, by the licence that allowed it", self.preempted.clone());
        to.register("gpu_seconds_lost", "GPU time lost by attempts that ended early, as far as the scheduler knows", self.lost.clone());
        to.register("promises_broken", "Promised starts that nodes or budgets took back", self.broken_promises.clone());
    }
}

/// What is counted of a line; each kind of line has some of it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Seen {
    class: Option<String>,
    outcome: Option<String>,
    licence: Option<String>,
    lost_gpu_ms: Option<i64>,
    attempt: Option<u32>,
    why: Option<String>,
}

/// A workload that waits for its first start.
struct Waiting {
    class: String,
    eligible_ms: Option<i64>,
}

/// Counts what happens, until the daemon stops.
pub(super) async fn watch(api: Arc<Api>) {
    let mut follower = match Follower::new(api.clone(), None, None).await {
        Ok(follower) => follower,
        Err(refusal) => return tracing::error!("nothing is counted for the metrics: {refusal:?}"),
    };
    let mut waiting: HashMap<u32, Waiting> = HashMap::new();
    while let Ok(Some(line)) = follower.next().await {
        let Ok(seen) = serde_json::from_str::<Seen>(&line.json) else { continue };
        count(&api.tally, &mut waiting, line.t_ms, (&line.event, line.workload), seen);
    }
}

fn count(tally: &Tally, waiting: &mut HashMap<u32, Waiting>, t_ms: i64, (event, workload): (&str, Option<u32>), seen: Seen) {
    match (event, workload) {
        ("submitted", Some(id)) => {
            let class = seen.class.unwrap_or_default();
            tally.submitted.get_or_create(&ClassLabels { class: class.clone() }).inc();
            waiting.insert(id, Waiting { class, eligible_ms: None });
        }
        ("eligible", Some(id)) => {
            waiting.entry(id).and_modify(|waiting| waiting.eligible_ms = Some(t_ms));
        }
        ("running", Some(id)) if seen.attempt == Some(1) => {
            if let Some(Waiting { class, eligible_ms: Some(since) }) = waiting.remove(&id) {
                tally.waits.get_or_create(&ClassLabels { class }).observe((t_ms - since) as f64 / 1000.0);
            }
        }
        ("ended", Some(id)) => {
            tally.ended.get_or_create(&OutcomeLabels { outcome: seen.outcome.unwrap_or_default() }).inc();
            tally.lost.inc_by(seen.lost_gpu_ms.unwrap_or(0).max(0) as f64 / 1000.0);
            waiting.remove(&id);
        }
        ("preempting", _) => {
            tally.preempted.get_or_create(&LicenceLabels { licence: seen.licence.unwrap_or_default() }).inc();
        }
        ("unreserved", _) if matches!(seen.why.as_deref(), Some("nodes_lost" | "budget")) => {
            tally.broken_promises.inc();
        }
        _ => {}
    }
}
