//! Invented rows: every field of everything that is kept, at times at its limits.

use crate::dice::Dice;
use std::collections::BTreeMap;
use stipend_core::quantity::Span;
use stipend_server::store::{Kind, Line, People};
use stipend_server::wire::budget::{BudgetChange, Changeset, PerPool};
use stipend_server::wire::length::Length;
use stipend_server::wire::token::{Role, Token};
use stipend_server::wire::workload::{ArrayIndex, Kind as WorkloadKind, OnPreempt, Start, State, Submission, Workload};

pub(crate) const USERS: [&str; 4] = ["ann", "bob", "", "o'neil"];
pub(crate) const BUDGETS: [&str; 8] = ["lab", "lab/nlp", "lab/nlp/olmo", "lab/nlp/molmo", "lab/nlpx", "lab/vision", "other", "lab/nlp-2"];
pub(crate) const POOLS: [&str; 3] = ["h100", "a100", "cpu"];
pub(crate) const STATES: [State; 9] = [
    State::Held,
    State::Waiting,
    State::Starting,
    State::Running,
    State::Stopping,
    State::Completed,
    State::Failed,
    State::Cancelled,
    State::TimedOut,
];

fn ms(dice: &mut Dice) -> i64 {
    *dice.pick(&[0, 1, 999, 1_793_000_000_000, i64::MAX / 2])
}

fn length(dice: &mut Dice) -> Length {
    Length(Span(*dice.pick(&[0, 1000, 60_000, 86_400_000, 5_400_000])))
}

fn number(dice: &mut Dice) -> u32 {
    *dice.pick(&[0, 1, 7, 4096, u32::MAX])
}

pub(crate) fn workload(dice: &mut Dice, id: u32) -> Workload {
    Workload {
        id,
        name: dice.text(),
        user: (*dice.pick(&USERS)).into(),
        budget: (*dice.pick(&BUDGETS)).into(),
        pool: (*dice.pick(&POOLS)).into(),
        state: *dice.pick(&STATES),
        members: number(dice),
        gpus_per_member: number(dice),
        min_runtime_ms: ms(dice),
        time_limit_ms: dice.maybe(ms),
        expected_runtime_ms: dice.maybe(ms),
        on_preempt: *dice.pick(&[OnPreempt::Resume, OnPreempt::Restart, OnPreempt::End]),
        priority: *dice.pick(&[0, -1, i16::MIN, i16::MAX]),
        kind: *dice.pick(&[WorkloadKind::Batch, WorkloadKind::Session]),
        submitted_ms: ms(dice),
        started_ms: dice.maybe(ms),
        ended_ms: dice.maybe(ms),
        protected_until_ms: dice.maybe(ms),
        allocated: dice.once_in(2),
        attempts: number(dice),
        preemptions: number(dice),
        losses: number(dice),
        retry_ms: dice.maybe(ms),
        placement: dice.some(|dice| (dice.text(), dice.some(|dice| dice.next() as u8))).into_iter().collect(),
        exit_code: dice.maybe(|dice| *dice.pick(&[0, 1, -1, 255])),
        array: dice.maybe(|dice| ArrayIndex { array: number(dice), index: number(dice), at_most: dice.maybe(number) }),
        after: dice.some(number),
        held_by: dice.maybe(Dice::text),
        idle_since_ms: dice.maybe(ms),
        ran_ms: ms(dice),
        why: dice.maybe(Dice::text),
    }
}

pub(crate) fn submission(dice: &mut Dice) -> Submission {
    Submission {
        budget: (*dice.pick(&BUDGETS)).into(),
        command: dice.some(Dice::text),
        name: dice.maybe(Dice::text),
        pools: dice.some(Dice::text),
        gpus: dice.maybe(number),
        members: dice.maybe(number),
        cpus: dice.maybe(number),
        memory_gib: dice.maybe(Dice::next),
        features: dice.some(Dice::text),
        same_block: dice.once_in(2),
        min_runtime: length(dice),
        time_limit: dice.maybe(length),
        expected_runtime: dice.maybe(length),
        on_preempt: *dice.pick(&[OnPreempt::Resume, OnPreempt::Restart, OnPreempt::End]),
        start: dice.maybe(|dice| *dice.pick(&[Start::Guaranteed, Start::Whenever])),
        priority: *dice.pick(&[0, -1, i16::MIN, i16::MAX]),
        checkpoint_every: dice.maybe(length),
        kind: *dice.pick(&[WorkloadKind::Batch, WorkloadKind::Session]),
        after: dice.some(number),
        array: dice.maybe(Dice::text),
        workdir: dice.maybe(Dice::text),
        env: texts(dice),
        checkpoint_command: dice.some(Dice::text),
        restore_command: dice.some(Dice::text),
    }
}

fn texts(dice: &mut Dice) -> BTreeMap<String, String> {
    dice.some(|dice| (dice.text(), dice.text())).into_iter().collect()
}

pub(crate) fn changeset(dice: &mut Dice, id: u64) -> Changeset {
    let budgets = dice.some(|dice| BudgetChange {
        path: dice.text(),
        share: dice.maybe(|dice| PerPool::All(dice.below(1_000_001) as f64 / 10_000.0)),
        gpus_max: dice.maybe(|dice| PerPool::By(dice.some(|dice| (dice.text(), dice.maybe(number))).into_iter().collect())),
        unallocated_gpus_max: dice.maybe(|dice| PerPool::All(Some(number(dice)))),
        min_runtime_max: dice.maybe(|dice| PerPool::All(Some(length(dice)))),
        order: dice.maybe(Dice::text),
        managers: dice.maybe(|dice| dice.some(Dice::text)),
        members: dice.maybe(|dice| dice.some(Dice::text)),
        closed: dice.maybe(|dice| dice.once_in(2)),
        rename_to: dice.maybe(Dice::text),
    });
    Changeset {
        id,
        version: dice.maybe(number),
        author: dice.text(),
        reason: dice.text(),
        made_ms: ms(dice),
        effective_ms: ms(dice),
        withdrawn: dice.once_in(3),
        budgets,
        difference: dice.some(Dice::text),
    }
}

pub(crate) fn token(dice: &mut Dice, id: u64) -> (Token, [u8; 32]) {
    let token = Token {
        id,
        user: dice.text(),
        role: *dice.pick(&[Role::Admin, Role::Operator, Role::User, Role::Viewer]),
        note: dice.text(),
        made_ms: ms(dice),
        revoked_ms: dice.maybe(ms),
    };
    (token, hash(id))
}

/// A token keeps its hash.
pub(crate) fn hash(id: u64) -> [u8; 32] {
    let mut hash = [7; 32];
    hash[..8].copy_from_slice(&id.to_le_bytes());
    hash
}

pub(crate) fn line(dice: &mut Dice, seq: u64, t_ms: i64) -> Line {
    let workload = dice.maybe(|dice| dice.below(30) as u32);
    Line { seq, t_ms, event: dice.text(), workload, json: dice.text() }
}

pub(crate) fn name(dice: &mut Dice) -> (Kind, u32, String) {
    let kind = *dice.pick(&[Kind::Pool, Kind::Node, Kind::User, Kind::Block, Kind::Feature]);
    (kind, dice.below(8) as u32, dice.text())
}

pub(crate) fn people(dice: &mut Dice) -> People {
    People { managers: dice.some(Dice::text), members: dice.some(Dice::text) }
}
