//! The event log in words: one sentence a line, with the reason that the line holds.

use crate::moment::{clock, long};
use serde_json::Value;
use stipend_sim::harmless::harmless;

/// The line with its time before it.
pub(crate) fn line(line: &Value, told: &str, now_ms: i64) -> String {
    let at = line.get("t_ms").and_then(Value::as_i64).unwrap_or_default();
    format!("{}  {told}", clock(at, now_ms))
}

/// What a line of the log says, or `None` for what is bookkeeping and not asked for.
pub(crate) fn tell(line: &Value, all: bool) -> Option<String> {
    let fields = Fields(line);
    let told = match fields.text("event").as_str() {
        "submitted" => submitted(&fields),
        "held" => fields.of_workload("is held", "why"),
        "started" => started(&fields),
        "running" => match fields.number("protected_until_ms") {
            Some(until) => format!("{} runs, protected until {}", fields.workload(), fields.clock(until)),
            None => format!("{} runs, not protected", fields.workload()),
        },
        "promoted" => fields.of_workload("is promoted in place: its contract and its charge begin now", "why"),
        "renewed" => fields.of_workload("renews its contract", "why"),
        "checkpoint" => format!("{} wrote a checkpoint", fields.workload()),
        "preempting" => preempting(&fields),
        "stopping" => format!("{} is told to stop, grace {}", fields.workload(), long(fields.number("grace_ms").unwrap_or(0))),
        "spared" => format!("{} is spared: its claimant went away", fields.workload()),
        "reserved" => format!(
            "{} starts at {} at the latest: {}",
            fields.workload(),
            fields.number("latest_start_ms").map_or(String::new(), |at| fields.clock(at)),
            fields.text("why")
        ),
        "unreserved" => fields.of_workload("has no promised start any more", "why"),
        "ended" => ended(&fields),
        "requeued" => format!("{} waits again", fields.workload()),
        "node" => node(&fields),
        "budgets" => format!(
            "the budget tree is changed by {}: version {}{}",
            fields.text("author"),
            fields.text("version"),
            fields.after(": ", "reason")
        ),
        "refused" => format!("refused: {}", fields.text("why")),
        "gap" => "nobody decided for a while; what was due meanwhile is made up for".to_owned(),
        _ if all => format!("{}: {line}", fields.text("event")),
        _ => return None,
    };
    Some(harmless(&told))
}

fn submitted(fields: &Fields) -> String {
    let members = fields.number("members").unwrap_or(1);
    let each = fields.number("gpus_per_member").unwrap_or(1);
    let gang = if members == 1 { each.to_string() } else { format!("{members}x{each}") };
    let contract = match fields.number("min_runtime_ms").unwrap_or(0) {
        0 => "unallocated".to_owned(),
        ms => format!("contract {}", long(ms)),
    };
    let unit = if members * each == 1 { "GPU" } else { "GPUs" };
    format!("{} submitted by {} for {}: {gang} {unit}, {contract}", fields.workload(), fields.text("user"), fields.text("budget"))
}

fn started(fields: &Fields) -> String {
    let attempt = match fields.number("attempt") {
        Some(attempt) if attempt > 1 => format!(", attempt {attempt}"),
        _ => String::new(),
    };
    format!("{} starts on {}{attempt}, {}: {}", fields.workload(), fields.placement(), fields.text("occupancy"), fields.text("why"))
}

fn preempting(fields: &Fields) -> String {
    let for_whom = match (fields.0.get("claimant"), fields.0.get("node")) {
        (Some(Value::String(claimant)), _) => format!("for {claimant}"),
        (_, Some(Value::String(node))) => format!("as {node} drains"),
        _ => "by an administrator".to_owned(),
    };
    format!("{} is preempted {for_whom}: {}", fields.workload(), fields.text("why"))
}

fn ended(fields: &Fields) -> String {
    let lost = match fields.number("lost_gpu_ms").unwrap_or(0) {
        0 => String::new(),
        lost => format!(", {} of GPU time lost", long(lost)),
    };
    let by = match fields.text("by").as_str() {
        "" | "itself" => String::new(),
        by => by.strip_prefix("claimant ").map_or_else(|| format!(", by {by}"), |claimant| format!(", for {claimant}")),
    };
    format!("{} {}{by}{lost}", fields.workload(), fields.text("outcome").replace('_', " "))
}

fn node(fields: &Fields) -> String {
    let severity = fields.after(", ", "severity");
    let until = fields.number("drain_until_ms").map_or(String::new(), |at| format!(", until {}", fields.clock(at)));
    format!("node {} is {}{severity}{until}{}", fields.text("node"), fields.text("state"), fields.after(": ", "reason"))
}

struct Fields<'a>(&'a Value);

impl Fields<'_> {
    /// A field as text; nothing where it is missing or null.
    fn text(&self, name: &str) -> String {
        match self.0.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }

    /// The field behind some words, if it says something.
    fn after(&self, words: &str, name: &str) -> String {
        let text = self.text(name);
        if text.is_empty() { text } else { format!("{words}{text}") }
    }

    fn workload(&self) -> String {
        self.text("workload")
    }

    fn of_workload(&self, what: &str, why: &str) -> String {
        format!("{} {what}{}", self.workload(), self.after(": ", why))
    }

    fn clock(&self, ms: i64) -> String {
        clock(ms, self.number("t_ms").unwrap_or(ms))
    }

    /// `gpu-1 (4 GPUs), gpu-2 (4 GPUs)`
    fn placement(&self) -> String {
        let Some(Value::Object(nodes)) = self.0.get("placement") else { return String::new() };
        let count = |gpus: &Value| gpus.as_array().map_or(0, Vec::len);
        let some = |(node, gpus): (&String, &Value)| match count(gpus) {
            1 => format!("{node} (1 GPU)"),
            count => format!("{node} ({count} GPUs)"),
        };
        nodes.iter().map(some).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_as_sentences() {
        let told = |line: Value| tell(&line, false).unwrap_or_default();
        let submitted = json!({"event": "submitted", "workload": "w3", "user": "ann", "budget": "lab/nlp", "members": 2, "gpus_per_member": 4, "min_runtime_ms": 60_000});
        assert_eq!(told(submitted), "w3 submitted by ann for lab/nlp: 2x4 GPUs, contract 1 min");
        let started = json!({"event": "started", "workload": "w3", "attempt": 2, "occupancy": "allocated", "placement": {"gpu-1": [0, 1], "gpu-2": [7]}, "why": "lab/nlp stands lowest"});
        assert_eq!(told(started), "w3 starts on gpu-1 (2 GPUs), gpu-2 (1 GPU), attempt 2, allocated: lab/nlp stands lowest");
        let preempting = json!({"event": "preempting", "workload": "w3", "claimant": "w9", "node": null, "why": "it is unallocated"});
        assert_eq!(told(preempting), "w3 is preempted for w9: it is unallocated");
        let drains = json!({"event": "preempting", "workload": "w3", "claimant": null, "node": "gpu-2", "why": "x"});
        assert_eq!(told(drains), "w3 is preempted as gpu-2 drains: x");
        let ended = json!({"event": "ended", "workload": "w3", "outcome": "timed_out", "lost_gpu_ms": 61_000, "by": ""});
        assert_eq!(told(ended), "w3 timed out, 1 min 1 s of GPU time lost");
        let node =
            json!({"event": "node", "node": "gpu-2", "state": "draining", "severity": "sick", "drain_until_ms": null, "reason": "fan"});
        assert_eq!(told(node), "node gpu-2 is draining, sick: fan");
        assert_eq!(told(json!({"event": "held", "workload": "w3\u{1b}[2J", "why": "waits for w2"})), "w3\u{fffd}[2J is held: waits for w2");
    }

    #[test]
    fn bookkeeping_is_told_on_request() {
        let charged = json!({"event": "charged", "gpu_ms": 5});
        assert_eq!(tell(&charged, false), None);
        assert!(tell(&charged, true).is_some_and(|told| told.starts_with("charged: {")));
    }
}
