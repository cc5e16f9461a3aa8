//! An explanation in words, on 80 columns.

use super::answer::{Explained, Leaf, Place, Prospect, Request, Running, Standing, Taker, Waiting, WaitingIn};
use crate::log::line::Licence;
use std::fmt;
use stipend_core::quantity::{self, Span};

/// How wide the text may be.
const WIDTH: usize = 80;

/// The width of the words that stand at the left.
const MARGIN: usize = 9;

/// So many nodes are named.
const NODES_NAMED: usize = 3;

/// So many leaves and takers are told one by one.
const TOLD: usize = 5;

/// What has been said.
struct Page(String);

impl Page {
    /// A paragraph beside a word, broken at blanks.
    fn say(&mut self, word: &str, text: &str) {
        let mut line = format!("{word:MARGIN$}");
        let mut is_empty = true;
        // A figure is not parted from its unit.
        for word in text.replace(" %", "\u{a0}%").split(' ') {
            if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.end(&line);
                (line, is_empty) = (" ".repeat(MARGIN), true);
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        self.end(&line);
    }

    fn end(&mut self, line: &str) {
        self.0 += line.replace('\u{a0}', " ").trim_end();
        self.0.push('\n');
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut page = Page(String::new());
        let state = match self.state.as_str() {
            "waiting" => "waits",
            "running" => "runs",
            "ended" => "has ended",
            _ => "was refused",
        };
        let run = match (&self.scenario, self.seed) {
            (Some(scenario), Some(seed)) => format!("{scenario}, seed {seed}: "),
            _ => String::new(),
        };
        page.end(&format!("{run}at {}, {} {state}", self.at, self.workload));
        page.end("");
        if let Some(request) = &self.request {
            page.say("request", &request.text());
        }
        if let Some(waiting) = &self.waiting {
            waiting.say(self.several_pools(), &mut page);
        }
        if let Some(prospect) = &self.prospect {
            page.say("prospect", &prospect.text());
        }
        if let Some(running) = &self.running {
            running.say(self.several_pools(), &mut page);
        }
        if let Some(ended) = self.ended.as_ref().filter(|_| self.state == "refused") {
            page.say("refused", &ended.by);
        } else if let Some(ended) = &self.ended {
            let lost = if ended.lost_gpu_hours == 0.0 {
                String::new()
            } else {
                format!("; {:.2} GPU-h of its last attempt lost", ended.lost_gpu_hours)
            };
            page.say("ended", &format!("{} at {}, by {}{lost}", ended.outcome, ended.at, ended.by));
        }
        if let Some(plan) = &self.preemption {
            page.say("yielded", &format!("at {}: {}", plan.at, plan.why));
        }
        page.end("");
        for (number, moment) in self.history.iter().enumerate() {
            let left_out = if 0 < self.history_left_out && number == self.history.len() / 2 {
                format!(" ({} moments before it are left out)", self.history_left_out)
            } else {
                String::new()
            };
            page.say(if number == 0 { "history" } else { "" }, &format!("{}{left_out} {}", moment.at, moment.text));
        }
        f.write_str(page.0.trim_end())
    }
}

impl Explained {
    /// Where there is one pool, it is not named.
    fn several_pools(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.pools.len() > 1)
    }
}

impl Prospect {
    fn text(&self) -> String {
        let kin = match self.outcomes {
            0 => "none like it has ended; by its user, its budget and all others it".to_string(),
            1 => "one like it has ended: it".to_string(),
            many => format!("{many} like it have ended: it"),
        };
        let percent = |ppm: u32| ppm / 10_000;
        let head_start = match self.head_start_ms {
            None => String::new(),
            Some(0) => "; its budget's order is completion, and it has no head start".into(),
            Some(ms) => format!("; its budget's order is completion, and it goes as if it had been eligible {} longer", Span(ms)),
        };
        format!(
            "{kin} completes with {} % (at least {} %), half of such work ends within {} and nine in ten within {}{head_start}",
            percent(self.completes_ppm),
            percent(self.completes_at_least_ppm),
            Span(self.runtime_p50_ms),
            Span(self.runtime_p90_ms)
        )
    }
}

impl Request {
    fn text(&self) -> String {
        let gang = format!("{}x{} GPUs", self.members, self.gpus_per_member);
        let charged = if self.charged_gpus == self.members * self.gpus_per_member {
            String::new()
        } else {
            format!(", charged as {}", self.charged_gpus)
        };
        let contract = if self.min_runtime_ms == 0 { "unallocated".into() } else { format!("min runtime {}", Span(self.min_runtime_ms)) };
        let limit = self.time_limit_ms.map_or(String::new(), |limit| format!(", time limit {}", Span(limit)));
        let pools = if self.pools.len() > 1 { format!(", in {}", self.pools.join(", else ")) } else { String::new() };
        format!(
            "{} by {}: {gang}{pools}{charged}, {contract}{limit}, {}, priority {}",
            self.budget, self.user, self.on_preempt, self.priority
        )
    }
}

impl Waiting {
    fn say(&self, several: bool, page: &mut Page) {
        let again = match self.attempts {
            0 => String::new(),
            1 => ", after 1 attempt".into(),
            attempts => format!(", after {attempts} attempts"),
        };
        page.say("waits", &format!("since {}{again}", self.since));
        for there in &self.pools {
            there.say(several, page);
        }
        if let Some(estimate) = &self.estimate {
            page.say("estimate", &estimate.text());
        }
        for (number, one) in self.counterfactuals.iter().enumerate() {
            page.say(if number == 0 { "instead" } else { "" }, &one.text);
        }
        if self.counterfactuals.is_empty() {
            page.say("instead", "no single change of its request that was tried would start it now");
        } else {
            page.say("", "(found by the planner, as if it were withdrawn and submitted anew now)");
        }
    }
}

impl WaitingIn {
    fn say(&self, several: bool, page: &mut Page) {
        let pool = if several { format!("in {}: ", self.pool) } else { String::new() };
        for (number, blocker) in self.blockers.iter().enumerate() {
            page.say(if number == 0 { "because" } else { "" }, &format!("{pool}{}", blocker.text));
        }
        if let Some(place) = &self.place {
            place.say(page);
            match &self.latest_start {
                Some(at) => {
                    page.say("when", &format!("{pool}it starts at {at} at the latest, on {}; they are reserved for it", self.reserved()))
                }
                None => place.say_when(page),
            }
        }
    }

    /// The nodes that are reserved for it, the first of them by name.
    fn reserved(&self) -> String {
        let named = self.reserved_nodes.iter().take(NODES_NAMED).cloned().collect::<Vec<_>>().join(", ");
        match self.reserved_nodes.len().saturating_sub(NODES_NAMED) {
            0 => named,
            more => format!("{named} and {more} other nodes"),
        }
    }
}

impl Place {
    fn say(&self, page: &mut Page) {
        let order = match self.order.as_str() {
            "own_share" => "its leaf is below its share, and such leaves go first",
            "tree" => "its leaf has its share; the rest goes by the tree",
            _ => "unallocated work gets what is idle, by the tree",
        };
        let stands = if self.order == "idle" { String::new() } else { format!(": {}", path(&self.standings)) };
        page.say("order", &format!("{order}{stands}"));
        let ahead = match self.ahead.len() {
            0 => "no other leaf goes first".to_owned(),
            1 => "1 leaf goes first".to_owned(),
            count => format!("{count} leaves go first"),
        };
        let of_leaf = match self.ahead_in_leaf {
            0 => "nothing of its own leaf is before it".to_owned(),
            1 => "1 workload of its own leaf is before it".to_owned(),
            count => format!("{count} workloads of its own leaf are before it"),
        };
        page.say("", &format!("{ahead}, {} come after; {of_leaf}", self.leaves_behind));
        self.ahead.iter().take(TOLD).for_each(|leaf| page.say("", &format!("- {}", leaf.text())));
        if TOLD < self.ahead.len() {
            page.say("", &format!("- and {} more", self.ahead.len() - TOLD));
        }
    }

    /// What can be said of its start where none is promised.
    fn say_when(&self, page: &mut Page) {
        if let Some(at) = &self.unprotected {
            page.say(
                "when",
                &format!("an estimate: from {at} on as many GPUs as it needs are unprotected, wherever they lie and whoever may take them"),
            );
        }
        if let Some(at) = &self.looks_again {
            page.say(
                if self.unprotected.is_none() { "when" } else { "" },
                &format!("it is looked at again at {at} at the latest; no start is promised"),
            );
        }
    }
}

impl Leaf {
    fn text(&self) -> String {
        let why = match self.order.as_str() {
            "own_share" => "below its share",
            "tree" => "by the tree",
            _ => "by unallocated use",
        };
        let sides =
            if self.order == "idle" { String::new() } else { format!(": {} beside {}", self.their_side.text(), self.own_side.text()) };
        format!("{} ({why}, {} waiting){sides}", self.budget, self.waiting)
    }
}

impl Running {
    fn say(&self, several: bool, page: &mut Page) {
        let licence = self.licence.map_or(String::new(), |licence| format!(", {}", started_by(licence)));
        let pool = if several { format!(" of {}", self.pool) } else { String::new() };
        page.say("runs", &format!("{} on {}{pool} since {}, attempt {}{licence}", self.occupancy, self.nodes, self.started, self.attempt));
        page.say("stands", &path(&self.standings));
        let protection = match (&self.protected_until, self.occupancy.as_str(), self.is_complete) {
            (_, "unallocated", _) if !self.turn.is_empty() => {
                "not before its turn: waiting allocated work may take its GPUs at any time until then".to_owned()
            }
            (_, "unallocated", _) => "it is never protected: waiting allocated work may take its GPUs at any time".to_owned(),
            (Some(until), ..) if self.is_protected => format!("until {until}; nobody may take its GPUs before"),
            (Some(until), ..) => format!("its protection ended at {until}; it goes on until somebody licensed takes its GPUs"),
            (None, _, false) => "while it starts, and for its contract from when all members run".to_owned(),
            (None, ..) => "none".to_owned(),
        };
        page.say("guarded", &protection);
        for (number, blocker) in self.turn.iter().enumerate() {
            page.say(if number == 0 { "its turn" } else { "" }, blocker);
        }
        if let (Some(leaving), Some(by)) = (&self.leaving, &self.leaving_by) {
            page.say("leaves", &format!("it has been told to leave, by {leaving}, and must have left by {by}"));
        }
        for (number, taker) in self.takers.iter().take(TOLD).enumerate() {
            page.say(if number == 0 { "takers" } else { "" }, &format!("- {}", taker.text()));
        }
        if TOLD < self.takers.len() {
            page.say("", &format!("- and {} more", self.takers.len() - TOLD));
        }
        if self.takers.is_empty() && self.leaving.is_none() && !self.is_protected && self.is_complete {
            page.say("takers", "nobody who waits is licensed to take its GPUs now");
        }
        if !self.takers.is_empty() {
            page.say("", "(of each leaf the workload that goes first; a licence alone takes nothing: the GPUs must fit and be needed)");
        }
        page.say("loss", &format!("{:.2} GPU-h would be lost if it were stopped now, as far as the scheduler knows", self.loss_gpu_hours));
        if self.is_doubted {
            page.say("", "(counted as if it resumed: work of its leaf that said it begins anew did not)");
        }
    }
}

impl Taker {
    fn text(&self) -> String {
        let compared = format!("{} + {} < {}", self.claimant_side.text(), quantity::Standing(self.quantum_ppm), self.victim_side.text());
        let licence = match self.licence {
            Licence::Unallocated => "allocated work may take unallocated work's GPUs".to_owned(),
            Licence::Share => format!("a leaf below its share may: {compared}"),
            Licence::Tree => format!("by the tree: {compared}"),
            Licence::OwnLeaf => "of its own leaf, by priority or age".to_owned(),
            Licence::Express => "a short contract may, on express nodes".to_owned(),
            other => format!("{other:?}"),
        };
        let worth = self.loss_limit_gpu_hours.map_or(String::new(), |limit| format!("; for a loss of at most {limit:.2} GPU-h"));
        format!("{} of {}: {licence}{worth}", self.workload, self.budget)
    }
}

impl Standing {
    fn text(&self) -> String {
        format!("{} {}", self.budget, quantity::Standing(self.standing_ppm.unwrap_or(u64::MAX)))
    }
}

fn path(standings: &[Standing]) -> String {
    standings.iter().map(Standing::text).collect::<Vec<_>>().join(" > ")
}

fn started_by(licence: Licence) -> &'static str {
    match licence {
        Licence::Free => "started on free GPUs",
        Licence::Unallocated => "started on unallocated work's GPUs",
        Licence::Share => "started on past-contract GPUs, as its leaf was below its share",
        Licence::Tree => "started on past-contract GPUs, by the tree",
        Licence::OwnLeaf => "started on past-contract GPUs of its own leaf",
        Licence::Express => "started on past-contract GPUs of express nodes",
        Licence::Reservation => "started on the nodes that were reserved for it",
        _ => "started by another licence",
    }
}
