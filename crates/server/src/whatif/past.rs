//! The recent past as a record that the simulator can replay.

use super::{Fork, length};
use crate::service::spec_of_submission;
use crate::store::{Kind, Reader, WorkloadRow};
use crate::wire::error::Problem;
use crate::wire::workload::{Filter, State};
use stipend_core::budget::BudgetTree;
use stipend_core::id::PoolId;
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::BudgetSpec;
use stipend_sim::job::Ends;
use stipend_sim::labels::Labels;
use stipend_sim::scenario::{Pool, Recorded, RecordedJob};

/// More submissions than this are not replayed: the oldest are left out.
const JOBS_MAX: usize = 200_000;

/// What was submitted in the last days, under the budgets as they are; and how much of it could not be used.
pub(super) fn past(fork: &Fork, reader: &Reader) -> Result<(Recorded, u64), Problem> {
    let now = fork.scheduler.now();
    let from = now - Span::days(i64::from(fork.days));
    let (mut rows, mut left_out) = (Vec::new(), 0);
    let mut filter = Filter { all: true, limit: Some(1000), ..Filter::default() };
    'pages: loop {
        let page = reader.workloads(&filter)?;
        for view in page.items {
            if Time(view.submitted_ms) < from || rows.len() >= JOBS_MAX {
                break 'pages;
            }
            rows.extend(reader.workload(view.id)?);
        }
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            break;
        }
    }
    rows.reverse();
    let first = rows.first().map_or(now, |row| Time(row.view.submitted_ms));
    let mut jobs = Vec::new();
    for row in rows {
        match job(fork, &row, first) {
            Some(job) => jobs.push(job),
            None => left_out += 1,
        }
    }
    let tree = fork.scheduler.tree();
    let names = fork.directory.names(Kind::Pool);
    let pool = |(number, name): (usize, &String)| {
        let knobs = fork.scheduler.knobs(PoolId(number as u16)).cloned().unwrap_or_default();
        Pool { name: name.clone(), knobs, cpus_per_gpu: None }
    };
    let (budgets, paths) = budgets_of(tree);
    let labels = Labels { budgets: paths, users: fork.directory.names(Kind::User).to_vec(), pools: names.to_vec(), ..Labels::default() };
    let recorded = Recorded {
        name: "this cluster".into(),
        pools: names.iter().enumerate().map(pool).collect(),
        nodes: fork.nodes.clone(),
        budgets,
        labels,
        warmup: Span::ZERO,
        measure: (now - first).max(Span::hours(1)),
        jobs,
    };
    Ok((recorded, left_out))
}

/// The budgets of a tree by number, with their paths. Numbers have no gaps: a budget is closed, never taken away.
pub(super) fn budgets_of(tree: &BudgetTree) -> (Vec<BudgetSpec>, Vec<String>) {
    let mut all: Vec<(BudgetSpec, String)> = tree.top_down().map(|budget| (budget.spec.clone(), budget.path.clone())).collect();
    all.sort_by_key(|(spec, _)| spec.id);
    all.into_iter().unzip()
}

fn job(fork: &Fork, row: &WorkloadRow, first: Time) -> Option<RecordedJob> {
    let (view, submission) = (&row.view, row.submission.as_ref()?);
    let spec = spec_of_submission(&fork.directory, fork.scheduler.tree(), submission, &view.user)?;
    let work = match view.state {
        State::Completed | State::Failed | State::TimedOut => Span(view.ran_ms.max(1000)),
        // What was cancelled before it ran asked for nothing; what it had is all that is known.
        State::Cancelled if view.ran_ms == 0 => return None,
        State::Cancelled => Span(view.ran_ms),
        _ => length(view),
    };
    let ends = match view.state {
        State::Failed => Ends::Failed,
        State::Cancelled => Ends::Cancelled,
        _ => Ends::Completed,
    };
    Some(RecordedJob { at: Time((Time(view.submitted_ms) - first).0), spec: spec.into(), work, ends })
}
