//! `[[workloads]]`, `[[streams]]` and `[[happenings]]` checked and resolved.

use super::error::ScenarioError;
use super::file_work::{HappeningFile, WhatText, WorkloadFile};
use super::resolve::Parts;
use super::{Happening, Listed, StreamPlan};
use crate::family::family;
use crate::generate::behaviour::Behaviour;
use crate::generate::stream::{Owner, Pace, Stream, StreamFile};
use crate::job::{Ends, Job, checkpoint_default, start_default, unprotected_default};
use crate::random::{Purpose, Random};
use std::collections::VecDeque;
use std::sync::Arc;
use stipend_core::id::{BudgetId, NodeId, WorkloadId};
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{Gang, OnPreempt, Start, WorkloadSpec};
use toml::Spanned;

impl Parts<'_> {
    /// The listed workloads by time of submission, each as often as its `count` says.
    pub(super) fn listed(&mut self, files: &[Spanned<WorkloadFile>]) -> Result<Vec<Listed>, ScenarioError> {
        let mut named: Vec<(String, Listed)> = Vec::new();
        for file in files {
            let (at, file) = (Time(file.get_ref().at.0.0), file.get_ref());
            let job = self.job(file)?;
            let name = file.name.get_ref();
            let names = if file.count == 1 { vec![name.clone()] } else { (1..=file.count).map(|n| format!("{name}-{n}")).collect() };
            named.extend(names.into_iter().map(|name| (name, Listed { at, job: job.clone() })));
        }
        named.sort_by_key(|(_, listed)| listed.at);
        let (names, listed): (Vec<String>, Vec<Listed>) = named.into_iter().unzip();
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let place = files.iter().rev().find(|file| twice[0].starts_with(file.get_ref().name.get_ref().as_str()));
            let span = place.map_or(0..0, |file| file.get_ref().name.span());
            return Err(self.source.error(span, format!("name = \"{}\": two workloads have this name", twice[0])));
        }
        self.labels.workloads = names;
        Ok(listed)
    }

    fn job(&mut self, file: &WorkloadFile) -> Result<Job, ScenarioError> {
        let budget = self.leaf(&file.budget)?;
        let user = self.user(file.user.as_deref(), file.budget.get_ref());
        let on_preempt = OnPreempt::from(file.on_preempt);
        let time_limit = file.time_limit.as_ref().map(|limit| limit.get_ref().0);
        if on_preempt == OnPreempt::End && time_limit.is_none() {
            let message =
                "on_preempt = \"end\": work that cannot go on after a preemption must state its time_limit, which is its contract";
            return Err(self.source.error(file.name.span(), message));
        }
        if let Some(limit) = file.time_limit.as_ref().filter(|limit| limit.get_ref().0 == Span::ZERO) {
            return Err(self.source.error(limit.span(), "time_limit = 0: nothing could run; leave it out for no limit"));
        }
        if let Some(expected) = file.expected_runtime.as_ref().filter(|expected| expected.get_ref().0 < Span::seconds(1)) {
            let message = format!("expected_runtime = {}: at least \"1s\"; leave it out to say nothing", expected.get_ref().0);
            return Err(self.source.error(expected.span(), message));
        }
        if file.work.get_ref().0 == Span::ZERO {
            return Err(self.source.error(file.work.span(), "work = 0: a workload has some work to do, such as \"10m\""));
        }
        let pools = self.pools(file.pools.as_ref())?;
        let gang = Gang {
            cpus_per_member: file.cpus_per_member,
            memory_per_member: file.memory_gib_per_member << 30,
            features: self.features(file.features.as_ref())?,
            same_block: file.same_block,
            ..self.hardware.gang(&pools, file.gang.get_ref())
        };
        if let Some(message) = self.never_fits(&gang, &pools) {
            return Err(self.source.error(file.gang.span(), message));
        }
        let min_runtime = if on_preempt == OnPreempt::End { time_limit.unwrap_or_default() } else { file.min_runtime.0 };
        let checkpoint_every = file.checkpoint_every.map_or_else(|| checkpoint_default(min_runtime), Span::from);
        let kin = file.user.as_deref().unwrap_or(file.budget.get_ref());
        let family = file.family.as_ref().map(|name| family(kin, name, gang.gpus().0.into()).id());
        let spec = WorkloadSpec {
            budget,
            user,
            family,
            pools,
            gang,
            min_runtime,
            time_limit,
            expected_runtime: file.expected_runtime.as_ref().map(|expected| expected.get_ref().0),
            on_preempt,
            start: file.start.map_or_else(|| start_default(on_preempt, min_runtime), Start::from),
            priority: file.priority,
            checkpoint_every: (on_preempt == OnPreempt::Resume && file.checkpoint_known).then_some(checkpoint_every),
            kind: file.kind(),
        };
        let unprotected_every = if file.checkpoint_every.is_some() { checkpoint_every } else { unprotected_default(checkpoint_every) };
        Ok(Job {
            spec: Arc::new(spec),
            work: file.work.get_ref().0,
            ends: Ends::failing(file.fails),
            checkpoint_every,
            unprotected_every,
            input: file.input(),
            stream: None,
            useful: Ppm::ONE,
            resumes: false,
            cancel_after: None,
        })
    }

    /// A stream, with how many there are of it.
    pub(super) fn stream(&mut self, file: &Spanned<StreamFile>, end: Time) -> Result<StreamPlan, ScenarioError> {
        let (span, file) = (file.span(), file.get_ref());
        let Some(pace) = file.pace() else {
            let message =
                "a stream is a closed loop with outstanding = 10 (and think), or an open loop with every = \"5m\"; give one of the two";
            return Err(self.source.error(span, message));
        };
        let gangs = file.gangs.get_ref();
        if gangs.is_empty() || !(file.weights.is_empty() || file.weights.len() == gangs.len()) {
            let message = format!(
                "gangs: {} gangs and {} weights; give at least one gang and no weights or one for each",
                gangs.len(),
                file.weights.len()
            );
            return Err(self.source.error(file.gangs.span(), message));
        }
        let pools = self.pools(file.pools.as_ref())?;
        let features = self.features(file.features.as_ref())?;
        let gangs = gangs.iter().map(|gang| Gang { features, ..self.hardware.gang(&pools, gang) }).collect();
        let recipe = file.recipe(&self.knobs, pools, gangs);
        if let Some(message) = recipe.gangs.iter().find_map(|gang| self.never_fits(gang, &recipe.pools)) {
            return Err(self.source.error(file.gangs.span(), message));
        }
        let stream = Stream {
            random: Random::new(0, Purpose::Stream, 0),
            owners: vec![Owner {
                budget: self.leaf(&file.budget)?,
                user: self.user(file.user.as_deref(), file.budget.get_ref()),
                phases: None,
                behaviour: Behaviour::Honest,
            }],
            turns: vec![1.0],
            recipe: Arc::new(recipe),
            pace,
            from: Time(file.from.0.0),
            spread: Span::ZERO,
            until: file.until.map_or(end, |until| Time(until.0.0).min(end)),
            turn: 0,
            submitted: Time(0),
            outstanding: 0,
            later: VecDeque::new(),
        };
        let slots = if matches!(pace, Pace::Closed { .. }) { file.outstanding.unwrap_or(1) } else { 1 };
        Ok(StreamPlan { stream, slots })
    }

    /// One happening.
    pub(super) fn happening(&self, file: &Spanned<HappeningFile>) -> Result<(Time, Happening), ScenarioError> {
        let wrong = |message: String| self.source.error(file.span(), message);
        let written = file.get_ref();
        let node = || self.node(written).map_err(wrong);
        let workload = || self.workload(written).map_err(wrong);
        let reason = written.reason.clone();
        let lasts = || written.lasts.map(Span::from).ok_or_else(|| wrong("it needs lasts = \"10m\": how long".into()));
        let repair = written.lasts.map(Span::from);
        let happening = match written.what {
            WhatText::Drain => Happening::Drain { node: node()?, severity: written.severity.into(), reason, repair },
            WhatText::Lose => Happening::Lose { node: node()?, repair },
            WhatText::Ready => Happening::Ready { node: node()? },
            WhatText::Cancel => Happening::Cancel { workload: workload()? },
            WhatText::Stop => Happening::Stop { workload: workload()?, reason },
            WhatText::Hold => Happening::Hold { workload: workload()?, reason },
            WhatText::Release => Happening::Release { workload: workload()? },
            WhatText::Stick => Happening::Stick { workload: workload()?, lasts: lasts()? },
            WhatText::SlowStart => Happening::SlowStart { workload: workload()?, lasts: lasts()? },
            WhatText::Gap => Happening::Gap { lasts: lasts()? },
            WhatText::Share => self.share(written).map_err(wrong)?,
            WhatText::Close => Happening::Close { budget: self.budget(written).map_err(wrong)?, closed: true },
            WhatText::Open => Happening::Close { budget: self.budget(written).map_err(wrong)?, closed: false },
            WhatText::Move => self.to_parent(written).map_err(wrong)?,
        };
        Ok((Time(written.at.0.0), happening))
    }

    fn node(&self, file: &HappeningFile) -> Result<NodeId, String> {
        let nodes = self.hardware.nodes.len();
        match file.node {
            Some(node) if (node as usize) < nodes => Ok(NodeId(node)),
            Some(node) => Err(format!("node = {node}: the nodes are numbered from 0 to {}", nodes - 1)),
            None => Err(format!("it needs node = 0 (to {}): which node", nodes - 1)),
        }
    }

    fn workload(&self, file: &HappeningFile) -> Result<WorkloadId, String> {
        let Some(name) = &file.workload else { return Err("it needs workload = \"NAME\": which of [[workloads]]".into()) };
        let found = self.labels.workloads.iter().position(|known| known == name);
        let number = found.ok_or_else(|| format!("workload = \"{name}\": no workload of [[workloads]] has this name"))?;
        Ok(WorkloadId(number as u32))
    }

    fn budget(&self, file: &HappeningFile) -> Result<BudgetId, String> {
        self.tree.find(file.budget.as_ref().ok_or("it needs budget = \"lab/nlp\": which budget")?)
    }

    /// A budget is named by the path that it has at the start, whatever moved since.
    fn to_parent(&self, file: &HappeningFile) -> Result<Happening, String> {
        let (Some(to), Some(share)) = (&file.to, file.share) else {
            return Err("it needs budget = \"lab/nlp/olmo\", to = \"lab/vision\" and share = 25: its new parent, and what it has of that in percent".into());
        };
        Ok(Happening::Move { budget: self.budget(file)?, to: self.tree.find(to)?, share: super::budgets::percent(share)? })
    }

    fn share(&self, file: &HappeningFile) -> Result<Happening, String> {
        let (Some(path), Some(share)) = (&file.budget, file.share) else {
            return Err("it needs budget = \"lab/nlp\" and share = 25: whose share, and the new one in percent".into());
        };
        let pool = file.pool.as_ref().map(|pool| self.hardware.find(pool)).transpose()?;
        Ok(Happening::Share { budget: self.tree.find(path)?, pool, share: super::budgets::percent(share)? })
    }
}
