//! A store beside plain maps that hold the same: after every few batches, and after each opening, both say the same.

use crate::dice::Dice;
use crate::invent::{self, BUDGETS, POOLS, STATES, USERS};
use std::collections::BTreeMap;
use std::path::Path;
use stipend_server::store::{Batch, Charge, Kind, Line, LineFilter, Made, People, Reader, Restored, Store, WorkloadRow};
use stipend_server::wire::budget::Changeset;
use stipend_server::wire::page::Cursor;
use stipend_server::wire::token::Token;
use stipend_server::wire::workload::{Filter, Submission, Workload};

const HOUR: i64 = 3_600_000;

#[derive(Default)]
struct Model {
    workloads: BTreeMap<u32, Workload>,
    submissions: BTreeMap<u32, Submission>,
    lines: Vec<Line>,
    names: BTreeMap<(i64, u32), (Kind, u32, String)>,
    changesets: BTreeMap<u64, Changeset>,
    people: BTreeMap<u32, People>,
    tokens: BTreeMap<u64, (Token, [u8; 32])>,
    keys: BTreeMap<(String, String), Made>,
    /// By hour, budget, pool, and whether for a lease.
    charges: BTreeMap<(i64, u32, u16, bool), i64>,
    by_user: BTreeMap<(u32, u32, u16), i64>,
    values: BTreeMap<String, String>,
    now: i64,
}

impl Model {
    /// Something new of everything, taken in here and returned for the store.
    fn batch(&mut self, dice: &mut Dice) -> Batch {
        let mut batch = Batch::default();
        self.now += dice.below(3) as i64 * 1000;
        for _ in 0..dice.below(6) {
            let line = invent::line(dice, self.lines.len() as u64 + 1, self.now);
            self.lines.push(line.clone());
            batch.lines.push(line);
        }
        self.change_workloads(dice, &mut batch);
        for (kind, number, name) in dice.some(invent::name) {
            self.names.insert((kind as i64, number), (kind, number, name.clone()));
            batch.names.push((kind, number, name));
        }
        for changeset in dice.some(|dice| {
            let id = dice.below(20);
            invent::changeset(dice, id)
        }) {
            self.changesets.insert(changeset.id, changeset.clone());
            batch.changesets.push(changeset);
        }
        for (budget, people) in dice.some(|dice| (dice.below(5) as u32, invent::people(dice))) {
            self.people.insert(budget, people.clone());
            batch.people.push((budget, people));
        }
        for token in dice.some(|dice| {
            let id = dice.below(9);
            invent::token(dice, id)
        }) {
            self.tokens.insert(token.0.id, token.clone());
            batch.tokens.push(token);
        }
        for (user, key, first) in dice.some(|dice| (dice.text(), dice.text(), dice.below(9) as u32)) {
            let made = Made { first, last: first + 2, body: dice.maybe(|dice| [dice.next() as u8; 32]) };
            self.keys.insert((user.clone(), key.clone()), made);
            batch.keys.push((user, key, made));
        }
        for (key, value) in dice.some(|dice| (dice.text(), dice.text())) {
            self.values.insert(key.clone(), value.clone());
            batch.values.push((key, value));
        }
        batch.charges = dice.some(|dice| self.charge(dice));
        batch
    }

    fn change_workloads(&mut self, dice: &mut Dice, batch: &mut Batch) {
        if dice.once_in(10) {
            let (from, to) = (*dice.pick(&BUDGETS), *dice.pick(&["lab/nlp", "lab/new/place", "gone"]));
            // No budget moves below itself.
            if !to.starts_with(from) {
                let inside = |path: &str| path == from || path.starts_with(&format!("{from}/"));
                for workload in self.workloads.values_mut().filter(|workload| inside(&workload.budget)) {
                    workload.budget = format!("{to}{}", &workload.budget[from.len()..]);
                }
                batch.moved.push((from.into(), to.into()));
            }
        }
        for _ in 0..dice.below(5) {
            let id = if self.workloads.is_empty() || dice.once_in(3) {
                self.workloads.len() as u32
            } else {
                dice.below(self.workloads.len() as u64) as u32
            };
            let before = self.workloads.get(&id).cloned();
            let fresh = invent::workload(dice, id);
            let view = match before {
                // Often only what no list is filtered by.
                Some(before) if dice.once_in(2) => Workload { why: fresh.why, attempts: fresh.attempts, ..before },
                _ => fresh,
            };
            let submission = (!self.submissions.contains_key(&id)).then(|| invent::submission(dice));
            self.submissions.extend(submission.clone().map(|submission| (id, submission)));
            self.workloads.insert(id, view.clone());
            batch.workloads.push(WorkloadRow { view, submission });
        }
    }

    /// Millisecond by millisecond, as it were: whole GPUs over a whole interval.
    fn charge(&mut self, dice: &mut Dice) -> Charge {
        let from_ms = dice.below(4 * HOUR as u64) as i64 - HOUR;
        let to_ms = from_ms + dice.below(3 * HOUR as u64) as i64;
        let gpus = *dice.pick(&[1, 8, -8]);
        let charge = Charge {
            budget: dice.below(3) as u32,
            pool: dice.below(2) as u16,
            user: dice.below(3) as u32,
            from_ms,
            to_ms,
            gpu_ms: gpus * (to_ms - from_ms),
            run: dice.once_in(2),
        };
        for hour in -1..8 {
            let inside = (to_ms.min((hour + 1) * HOUR) - from_ms.max(hour * HOUR)).max(0);
            *self.charges.entry((hour, charge.budget, charge.pool, charge.run)).or_default() += gpus * inside;
        }
        *self.by_user.entry((charge.user, charge.budget, charge.pool)).or_default() += charge.gpu_ms;
        charge
    }

    fn check_restored(&self, restored: &Restored) {
        assert_eq!(restored.last_line, self.lines.len() as u64);
        assert_eq!(restored.names, self.names.values().cloned().collect::<Vec<_>>());
        let live: Vec<&Workload> = self.workloads.values().filter(|workload| !workload.state.is_over()).collect();
        assert_eq!(restored.live.iter().collect::<Vec<_>>(), live);
        let pending = self.changesets.values().filter(|changeset| changeset.version.is_none() && !changeset.withdrawn);
        assert_eq!(restored.pending.iter().collect::<Vec<_>>(), pending.collect::<Vec<_>>());
        assert_eq!(restored.people, self.people.clone().into_iter().collect::<Vec<_>>());
        let in_force = self.tokens.values().filter(|(token, _)| token.revoked_ms.is_none()).cloned();
        assert_eq!(restored.tokens, in_force.collect::<Vec<_>>());
        assert_eq!(restored.values, self.values.clone().into_iter().collect::<Vec<_>>());
    }

    fn check_reader(&self, reader: &Reader, dice: &mut Dice) {
        for _ in 0..4 {
            self.check_list(reader, &filter(dice));
            self.check_lines(reader, dice);
        }
        let id = dice.below(self.workloads.len() as u64 + 2) as u32;
        let found = reader.workload(id).expect("read");
        assert_eq!(found.as_ref().map(|row| &row.view), self.workloads.get(&id));
        assert_eq!(found.and_then(|row| row.submission).as_ref(), self.submissions.get(&id));
        self.check_rest(reader, dice);
    }

    fn check_list(&self, reader: &Reader, filter: &Filter) {
        let wanted = |workload: &&Workload| {
            let budget = |path: &String| workload.budget == *path || workload.budget.starts_with(&format!("{path}/"));
            let name = serde_json::to_value(workload.state).expect("a name");
            filter.user.as_ref().is_none_or(|user| *user == workload.user)
                && filter.budget.as_ref().is_none_or(budget)
                && filter.pool.as_ref().is_none_or(|pool| *pool == workload.pool)
                && match &filter.state {
                    Some(states) => states.split(',').any(|state| name == state),
                    None => filter.all || !workload.state.is_over(),
                }
        };
        let expected: Vec<&Workload> = self.workloads.values().rev().filter(wanted).collect();
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = reader.workloads(&Filter { cursor, ..filter.clone() }).expect("a page");
            assert!(page.items.len() <= filter.limit.unwrap_or(100) as usize);
            found.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter:?}");
    }

    fn check_lines(&self, reader: &Reader, dice: &mut Dice) {
        let time = |dice: &mut Dice| dice.below(self.now as u64 + 3000) as i64;
        let filter = LineFilter {
            from_seq: dice.below(self.lines.len() as u64 + 3),
            workload: dice.maybe(|dice| dice.below(32) as u32),
            from_ms: dice.maybe(time),
            to_ms: dice.maybe(time),
        };
        let limit = *dice.pick(&[1, 3, 1000]);
        let wanted = |line: &&Line| {
            line.seq >= filter.from_seq
                && filter.workload.is_none_or(|workload| line.workload == Some(workload))
                && filter.from_ms.is_none_or(|from| line.t_ms >= from)
                && filter.to_ms.is_none_or(|to| line.t_ms < to)
        };
        let expected: Vec<&Line> = self.lines.iter().filter(wanted).take(limit as usize).collect();
        assert_eq!(reader.lines(&filter, limit).expect("lines").iter().collect::<Vec<_>>(), expected, "{filter:?}");
    }

    fn check_rest(&self, reader: &Reader, dice: &mut Dice) {
        let (mut found, mut cursor) = (Vec::new(), Cursor { cursor: None, limit: Some(1 + dice.below(7) as u32) });
        loop {
            let page = reader.changesets(&cursor).expect("a page");
            found.extend(page.items);
            cursor.cursor = page.next;
            if cursor.cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, self.changesets.values().rev().cloned().collect::<Vec<_>>());
        let id = dice.below(22);
        assert_eq!(reader.changeset(id).expect("read").as_ref(), self.changesets.get(&id));
        assert_eq!(reader.tokens().expect("read"), self.tokens.values().map(|(token, _)| token.clone()).collect::<Vec<_>>());
        let owner = reader.token_owner(&invent::hash(id)).expect("read").map(|owner| (owner.id, owner.user, owner.role));
        let in_force = self.tokens.get(&id).filter(|(token, _)| token.revoked_ms.is_none());
        assert_eq!(owner, in_force.map(|(token, _)| (token.id, token.user.clone(), token.role)));
        let (user, key) = (dice.text(), dice.text());
        assert_eq!(reader.key(&user, &key).expect("read"), self.keys.get(&(user, key)).copied());
        let (from, to) = (dice.below(4) as i64 - 2, dice.below(10) as i64);
        let mut expected: BTreeMap<(i64, u32, u16), (i64, i64)> = BTreeMap::new();
        for (&(hour, budget, pool, run), gpu_ms) in self.charges.iter().filter(|((hour, ..), _)| (from..to).contains(hour)) {
            let sums = expected.entry((hour, budget, pool)).or_default();
            *(if run { &mut sums.0 } else { &mut sums.1 }) += gpu_ms;
        }
        let usage = reader.usage(from * HOUR, to * HOUR).expect("read");
        let found = usage.iter().map(|usage| ((usage.hour_ms / HOUR, usage.budget, usage.pool), (usage.run_gpu_ms, usage.held_gpu_ms)));
        let is_some = |sums: &(i64, i64)| *sums != (0, 0);
        assert_eq!(
            found.filter(|(_, sums)| is_some(sums)).collect::<BTreeMap<_, _>>(),
            expected.into_iter().filter(|(_, sums)| is_some(sums)).collect()
        );
        let users = reader.usage_by_user(-10 * HOUR, 20 * HOUR).expect("read");
        let found = users.iter().map(|usage| ((usage.user, usage.budget, usage.pool), usage.gpu_ms));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), self.by_user);
    }
}

fn filter(dice: &mut Dice) -> Filter {
    let state = |dice: &mut Dice| {
        let states: Vec<String> = (0..=dice.below(3))
            .map(|_| serde_json::to_value(dice.pick(&STATES)).expect("a name").as_str().expect("a text").to_owned())
            .collect();
        states.join(",")
    };
    Filter {
        user: dice.maybe(|dice| (*dice.pick(&USERS)).into()),
        budget: dice.maybe(|dice| (*dice.pick(&[&BUDGETS[..], &["nobody", "lab/new"]].concat())).into()),
        pool: dice.maybe(|dice| (*dice.pick(&POOLS)).into()),
        state: dice.maybe(state),
        all: dice.once_in(2),
        explain: false,
        cursor: None,
        limit: dice.maybe(|dice| *dice.pick(&[1, 2, 5, 1000])),
    }
}

fn open(folder: &Path) -> (Store, Restored) {
    Store::open(folder).unwrap_or_else(|error| panic!("{error:?}"))
}

#[test]
fn a_store_holds_what_it_was_given() {
    for seed in 0..12 {
        let mut dice = Dice::new(seed);
        let folder = tempfile::tempdir().expect("a folder");
        let (mut store, _) = open(folder.path());
        let mut reader = store.reader().expect("a reader");
        let mut model = Model::default();
        for _ in 0..40 {
            store.commit(&model.batch(&mut dice)).expect("written");
            if dice.once_in(4) {
                model.check_reader(&reader, &mut dice);
            }
            if dice.once_in(8) {
                drop(store);
                let (again, restored) = open(folder.path());
                model.check_restored(&restored);
                (store, reader) = (again, Reader::open(folder.path()).expect("a reader"));
                model.check_reader(&reader, &mut dice);
            }
        }
    }
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path());
    let reader = store.reader().expect("a reader");
    let refusal = |filter: Filter| reader.workloads(&filter).expect_err("refused").message;
    let message = "state = \"done\": expected some of held, waiting, starting, running, stopping, completed, failed, cancelled, timed_out, with commas between";
    assert_eq!(refusal(Filter { state: Some("running, done".into()), ..Filter::default() }), message);
    assert_eq!(refusal(Filter { limit: Some(1001), ..Filter::default() }), "limit = 1001: expected 1 to 1000");
    assert_eq!(
        refusal(Filter { cursor: Some("-1".into()), ..Filter::default() }),
        "cursor = \"-1\": expected the `next` of the page before"
    );
}
