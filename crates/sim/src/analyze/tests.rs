use super::*;
use crate::trace::Reading;

const HEADER: &str = "JobID|JobName|User|Account|State|Submit|Start|End|Elapsed|Timelimit|AllocTRES\n";

fn read(text: &str) -> Trace {
    let reading = Reading { cpu_jobs: true, sizeless_jobs: true, ..Reading::default() };
    Trace::read(text.as_bytes(), reading).expect("a known form")
}

/// A log of jobs on 2026-10-01: name, user, state, the hour of the start, hours, GPUs; each was submitted half an hour before.
fn log(jobs: &[(&str, &str, &str, u32, u32, u32)]) -> String {
    let line = |(number, (name, user, state, at, ran, gpus)): (usize, &(&str, &str, &str, u32, u32, u32))| {
        let time = |hour: u32, minute: u32| format!("2026-10-{:02}T{:02}:{minute:02}:00", 1 + hour / 24, hour % 24);
        let tres = if *gpus > 0 { format!("cpu=8,gres/gpu={gpus}") } else { "cpu=4".into() };
        format!(
            "{}|{name}|{user}|lab|{state}|{}|{}|{}|{ran:02}:00:00|20:00:00|{tres}\n",
            number + 1,
            time(at - 1, 30),
            time(*at, 0),
            time(at + ran, 0)
        )
    };
    HEADER.to_owned() + &jobs.iter().enumerate().map(line).collect::<String>()
}

#[test]
fn what_is_lost_and_what_is_not() {
    let found = Analysis::of(&read(&log(&[
        ("a", "ann", "COMPLETED", 1, 2, 4),
        ("a", "ann", "FAILED", 4, 1, 4),
        ("b", "bob", "TIMEOUT", 4, 3, 2),
        ("c", "bob", "CANCELLED by 7", 5, 10, 1),
        ("d", "bob", "RUNNING", 14, 1, 8),
        ("e", "bob", "COMPLETED", 6, 5, 0),
    ])));
    assert_eq!((found.unit, found.jobs, found.hours), (Unit::Gpu, 5, 8.0 + 4.0 + 6.0 + 10.0 + 8.0));
    assert_eq!((found.without_gpus.jobs, found.without_gpus.gpu_hours), (1, 20.0));
    let lost: Vec<(Cause, u64, f64)> = found.lost.iter().map(|loss| (loss.cause, loss.jobs, loss.hours)).collect();
    assert_eq!(lost, [(Cause::TimedOut, 1, 6.0), (Cause::Failed, 1, 4.0), (Cause::Cancelled, 1, 10.0)]);
    assert_eq!(found.lost_hours, 10.0);
    let completion = found.completion.expect("some ended");
    assert_eq!((completion.jobs.count, completion.jobs.of, completion.kept_jobs.of), (1, 4, 3));
    assert_eq!((completion.hours, completion.kept_hours), (8.0 / 28.0, 8.0 / 18.0));
    let users: Vec<(&str, f64, f64)> =
        found.users.iter().flat_map(|users| &users.first).map(|user| (user.name.as_str(), user.lost_hours, user.cancelled_hours)).collect();
    assert_eq!(users, [("bob", 6.0, 10.0), ("ann", 4.0, 0.0)]);
    let waits: Vec<(u64, u64, f64)> = found.waits.iter().map(|wait| (wait.to, wait.started, wait.p50_s)).collect();
    assert_eq!(waits, [(1, 1, 1800.0), (2, 1, 1800.0), (4, 2, 1800.0), (8, 1, 1800.0)]);
    let limits = found.limits.expect("all have one");
    assert_eq!((limits.jobs, limits.reached, limits.reached_hours, limits.used_p50), (4, 1, 6.0, 0.1));
}

#[test]
fn every_hour_is_counted_once() {
    let found = Analysis::of(&read(&log(&[
        ("a", "ann", "COMPLETED", 1, 2, 4),
        ("a", "ann", "FAILED", 4, 1, 4),
        ("c", "bob", "CANCELLED by 7", 5, 10, 1),
        ("d", "bob", "NODE_FAIL", 6, 1, 8),
    ])));
    let parts = |of: fn(&Period) -> f64| found.periods.iter().map(of).sum::<f64>();
    let sums = [parts(|part| part.completed), parts(|part| part.lost), parts(|part| part.cancelled), parts(|part| part.unknown)];
    for (sum, expected) in sums.into_iter().zip([8.0, 12.0, 10.0, 0.0]) {
        assert!((sum - expected).abs() < 1e-6, "{sums:?}");
    }
    let lengths: f64 = found.lengths.iter().map(|one| one.completed_hours + one.lost_hours + one.cancelled_hours).sum();
    assert_eq!((lengths, found.hours), (30.0, 30.0));
    assert_eq!(found.budgets.hours, 30.0);
}

/// What earlier attempts lost is no part of the completion, and lost once, whatever came after.
#[test]
fn attempts_before_the_last() {
    let text = HEADER.to_owned()
        + "1|a|ann|lab|PREEMPTED|2026-10-01T00:00:00|2026-10-01T01:00:00|2026-10-01T03:00:00|02:00:00|1-00:00:00|gres/gpu=2\n\
           1|a|ann|lab|COMPLETED|2026-10-01T00:00:00|2026-10-01T04:00:00|2026-10-01T07:00:00|03:00:00|1-00:00:00|gres/gpu=2\n\
           2|a|ann|lab|NODE_FAIL|2026-10-01T00:00:00|2026-10-01T01:00:00|2026-10-01T02:00:00|01:00:00|1-00:00:00|gres/gpu=1\n\
           2|a|ann|lab|FAILED|2026-10-01T00:00:00|2026-10-01T04:00:00|2026-10-01T05:00:00|01:00:00|1-00:00:00|gres/gpu=1\n";
    let found = Analysis::of(&read(&text));
    let lost: Vec<(Cause, f64)> = found.lost.iter().map(|loss| (loss.cause, loss.hours)).collect();
    assert_eq!(lost, [(Cause::Preempted, 4.0), (Cause::Failed, 1.0), (Cause::NodeFailed, 1.0)]);
    assert_eq!(found.completion.map(|completion| completion.hours), Some(6.0 / 12.0));
}

/// The records of a job that was requeued: its state each time, when it started and ended, both in hours.
fn requeued(job: u32, attempts: &[(&str, u32, Option<u32>, u32)]) -> String {
    let line = |&(state, start, end, ran): &(&str, u32, Option<u32>, u32)| {
        let time = |hour: u32| format!("2026-10-{:02}T{:02}:00:00", 1 + hour / 24, hour % 24);
        let end = end.map_or("Unknown".into(), time);
        format!("{job}|a|ann|lab|{state}|{}|{}|{end}|{ran:02}:00:00|12:00:00|gres/gpu=1\n", time(start - 1), time(start))
    };
    attempts.iter().map(line).collect()
}

#[test]
fn each_lost_attempt_has_its_own_cause_and_no_hour_counts_twice() {
    let text = HEADER.to_owned()
        + &requeued(1, &[("NODE_FAIL", 1, Some(11), 10), ("PREEMPTED", 12, Some(16), 4), ("CANCELLED by 0", 20, Some(21), 1)])
        + &requeued(2, &[("NODE_FAIL", 1, Some(11), 10), ("RUNNING", 20, None, 1)])
        + &requeued(3, &[("REQUEUED", 1, Some(9), 8), ("COMPLETED", 10, Some(21), 11)]);
    let found = Analysis::of(&read(&text));
    let lost: Vec<(Cause, f64)> = found.lost.iter().map(|loss| (loss.cause, loss.hours)).collect();
    assert_eq!(lost, [(Cause::NodeFailed, 20.0), (Cause::Requeued, 8.0), (Cause::Preempted, 4.0), (Cause::Cancelled, 1.0)]);
    let running = found.outcomes.iter().find(|one| one.outcome == Outcome::Running).map(|one| one.part.gpu_hours);
    assert_eq!((running, found.hours), (Some(1.0), 20.0 + 8.0 + 4.0 + 1.0 + 1.0 + 11.0));
    assert_eq!(found.budgets.first[0].cancelled_hours, 1.0);
    let length = |of: fn(&Length) -> f64| found.lengths.iter().map(of).sum::<f64>();
    assert_eq!((length(|one| one.lost_hours), length(|one| one.cancelled_hours), length(|one| one.completed_hours)), (32.0, 1.0, 11.0));
    let lost: f64 = found.periods.iter().map(|part| part.lost).sum();
    assert!((lost - 32.0).abs() < 1e-6, "{lost}");
    // The wait counts until the first start, the limit for each attempt.
    assert_eq!(found.waits[0].max_s, 3600.0);
    assert_eq!(found.limits.map(|limits| (limits.used_p90, limits.close)), Some((0.9166, 1)));
}

/// What the accounting forgot to close ran no longer than it says itself, however long the log goes on.
#[test]
fn what_still_runs_ran_as_long_as_the_log_says() {
    let text = HEADER.to_owned() + &requeued(1, &[("RUNNING", 1, None, 1)]) + &requeued(2, &[("COMPLETED", 600, Some(602), 2)]);
    assert_eq!(Analysis::of(&read(&text)).hours, 3.0);
}

#[test]
fn families_repeat_and_nothing_is_known_before_it_happened() {
    let name = |seed: u32| format!("train_seed{seed}");
    let names: Vec<String> = (0..6).map(name).collect();
    let one_after_the_other: Vec<_> = (0u32..6).map(|k| (names[k as usize].as_str(), "ann", "FAILED", 1 + 2 * k, 1, 4)).collect();
    let found = Analysis::of(&read(&log(&one_after_the_other)));
    let worst = &found.families.worst[0];
    assert_eq!((worst.stem.as_str(), worst.completed.of, worst.lost_hours, worst.to), ("train_seed", 6, 24.0, 4));
    assert_eq!(worst.died.map(|death| (death.count, death.p50_s)), Some((6, 3600.0)));
    assert_eq!((found.families.repeats.lost.count, found.families.repeats.lost_hours), (3, 12.0));
    let family = found.findings.iter().find(|finding| finding.kind == Kind::Family);
    assert_eq!(family.map(|finding| (finding.hours, finding.jobs)), Some((Some(20.0), 6)));
    // All at once: none could know of the others.
    let at_once: Vec<_> = (0..6).map(|k| (names[k].as_str(), "ann", "FAILED", 1, 1, 4)).collect();
    assert_eq!(Analysis::of(&read(&log(&at_once))).families.repeats.lost.of, 0);
}

#[test]
fn logs_that_tell_less() {
    let no_outcomes = Analysis::of(&read("submit_s,work_s,gpus,team\n0,3600,8,a\n60,3600,4,b\n"));
    assert!(
        !no_outcomes.tells_outcomes && no_outcomes.completion.is_none() && no_outcomes.lost.is_empty() && no_outcomes.findings.is_empty()
    );
    let no_gpus = Analysis::of(&read(&log(&[("a", "ann", "FAILED", 1, 2, 0), ("a", "ann", "COMPLETED", 1, 2, 0)])));
    assert_eq!((no_gpus.unit, no_gpus.hours, no_gpus.lost_hours), (Unit::Cpu, 16.0, 8.0));
    let no_sizes = "JobID|State|Submit|Start|End\n1|FAILED|2026-10-01T00:00:00|2026-10-01T01:00:00|2026-10-01T03:00:00\n";
    let no_sizes = Analysis::of(&read(no_sizes));
    assert_eq!((no_sizes.unit, no_sizes.hours, no_sizes.ruled[0].rows), (Unit::Cpu, 2.0, 1));
    let empty = Analysis::of(&read("submit_s,work_s,gpus\n"));
    assert_eq!((empty.jobs, empty.hours, empty.waits.len()), (0, 0.0, 0));
    let processors =
        Analysis::of(&read("1 0 10 3600 8 -1 -1 8 7200 -1 1 3 1 2 1 -1 -1 -1\n2 9 10 3600 8 -1 -1 8 7200 -1 0 3 1 7 1 -1 -1 -1\n"));
    assert_eq!((processors.unit, processors.hours, processors.families.worst[0].stem.as_str()), (Unit::Cpu, 16.0, "executable 7"));
}

/// Two teams, one node: what of a team's own work goes first changes, what teams get does not.
#[test]
fn a_replay_under_two_orders() {
    let jobs: Vec<_> = (0u32..12)
        .map(|k| ("a", if k % 2 == 0 { "ann" } else { "bob" }, if k % 4 == 0 { "FAILED" } else { "COMPLETED" }, 1, 1 + (11 - k) % 6, 8))
        .collect();
    let trace = read(&log(&jobs));
    let mut told = Vec::new();
    let cluster = whatif::Cluster { nodes: 1, gpus_per_node: 8 };
    let found =
        whatif::what_if(&trace, cluster, &["priority", "shortest-contract"], &mut |number, _| told.push(number)).expect("it can run");
    let [usual, shortest] = found.orders.as_slice() else { panic!("two orders") };
    assert!(found.tells_outcomes && told.contains(&0) && told.contains(&1));
    assert!(shortest.completed > usual.completed && shortest.completed + usual.completed > 0, "{found:?}");
    let held = |one: &whatif::Replayed| one.completed_gpu_hours + one.lost_gpu_hours + one.open_gpu_hours + one.cancelled_gpu_hours;
    let span_hours = 6.5;
    assert!(held(usual) <= 8.0 * span_hours + 1e-6 && held(shortest) <= 8.0 * span_hours + 1e-6, "{found:?}");
    let waiting: u64 = usual.waits.iter().map(|wait| wait.started + wait.waiting).sum();
    assert_eq!(waiting, 12);
    assert!(whatif::what_if(&trace, cluster, &["lottery"], &mut |_, _| {}).expect_err("no such order").contains("`lottery`"));
    let none = read(&log(&[("a", "ann", "FAILED", 1, 2, 0)]));
    assert!(whatif::what_if(&none, cluster, &["fifo"], &mut |_, _| {}).expect_err("no GPUs").contains("this log has none"));
}

/// One clock that was wrong for a moment makes a log of decades: the job is named by which it is one.
#[test]
fn a_log_that_is_too_long_to_replay_says_which_job_lies_far_from_the_others() {
    let text = log(&[("a", "ann", "COMPLETED", 1, 2, 4), ("b", "ann", "COMPLETED", 2, 2, 4), ("c", "ann", "COMPLETED", 3, 2, 4)]);
    let cluster = whatif::Cluster { nodes: 1, gpus_per_node: 8 };
    let refused = |text: &str| whatif::what_if(&read(text), cluster, &["fifo"], &mut |_, _| {}).expect_err("decades");
    let early = refused(&text.replacen("2026", "1999", 2));
    assert!(early.contains("arrives on 1999-10-01 00:30:00 (line 2)") && early.contains("lies the one of line 2:"), "{early}");
    assert!(early.starts_with("the log spans 9862d, and at most 7300d can be replayed: ") && !early.contains("--set"), "{early}");
    let late = refused(&text.replace("2026-10-01T05", "2099-10-01T05"));
    assert!(late.contains("ends on 2099-10-01 05:00:00 (line 4)") && late.contains("lies the one of line 4:"), "{late}");
    let never = HEADER.to_owned() + "1|a|ann|lab|PENDING|2026-10-01T00:00:00|Unknown|Unknown|00:00:00|1-00:00:00|gres/gpu=2\n";
    assert!(refused(&never).contains("needs jobs that ran"));
}

/// What the log does not say is one thing, what has not come to pass yet another.
#[test]
fn whether_outcomes_are_told() {
    let told = |text: &str| {
        let found = Analysis::of(&read(text));
        (found.tells_outcomes, found.completion.is_some())
    };
    let open = HEADER.to_owned() + &requeued(1, &[("RUNNING", 1, None, 1)]) + &requeued(2, &[("RUNNING", 2, None, 3)]);
    assert_eq!(told(&open), (true, false), "none has ended");
    let line = "1|a|ann|lab|PENDING|2026-10-01T00:00:00|Unknown|Unknown|00:00:00|1-00:00:00|gres/gpu=2\n";
    assert_eq!(told(&(HEADER.to_owned() + line)), (true, false), "none has begun");
    assert_eq!(told(&(open + &requeued(3, &[("FAILED", 2, Some(4), 2)]))), (true, true));
    let untold = "JobID|Submit|Start|End|AllocTRES\n1|2026-10-01T00:00:00|2026-10-01T01:00:00|2026-10-01T03:00:00|gres/gpu=2\n";
    assert_eq!(told(untold), (false, false), "it has ended, and nobody says how");
    assert_eq!(told("submit_s,work_s,gpus\n0,3600,8\n"), (false, false));
}

/// No date is made of nothing.
#[test]
fn a_log_without_jobs_has_no_date() {
    for text in [HEADER, "timestamp,duration,num_gpus,cluster\n", "{\"t_ms\":1790000000000,\"event\":\"node\"}\n"] {
        let found = Analysis::of(&read(text));
        assert_eq!((found.jobs, found.first_unix_ms), (0, None), "{text}");
    }
}

/// A name may be as long as a page; a finding is a sentence.
#[test]
fn findings_shorten_names() {
    let (name, user) = ("deep_".repeat(200), "u".repeat(250));
    let jobs: Vec<_> =
        (0u32..12).map(|k| (name.as_str(), user.as_str(), "FAILED", 1 + k, 1, 4)).chain([("b", "bob", "COMPLETED", 1, 9, 4)]).collect();
    let found = Analysis::of(&read(&log(&jobs)));
    assert!(
        found.findings.iter().any(|finding| finding.kind == Kind::Family && finding.what.contains("deep_deep")),
        "{:?}",
        found.findings
    );
    assert!(found.findings.iter().all(|finding| finding.what.chars().count() < 250), "{:?}", found.findings);
}
