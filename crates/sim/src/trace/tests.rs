use super::*;

fn read(text: &[u8]) -> Trace {
    Trace::read(text, Reading::default()).expect("the header is known")
}

#[test]
fn bench_rows() {
    let trace = read(
        b"job_id,submit_s,gpus,runtime_s,timelimit_s,min_runtime_s,user,team,class,status,priority\n\
        1,100,24,3968,4364,4364,32,2,medium,1,0\n2,160,16,14988,44964,28800,28,13,medium,5,2\n",
    );
    assert_eq!(trace.bad_rows, 0);
    let first = trace.rows[0];
    assert_eq!(
        (first.submit_ms, first.work_ms, first.limit_ms, first.min_runtime_ms, first.gpus),
        (0, 3_968_000, 4_364_000, Some(4_364_000), 24)
    );
    assert_eq!((trace.rows[1].submit_ms, trace.rows[1].outcome.fails(), trace.rows[1].priority), (60_000, true, 2));
    assert_eq!((trace.teams, trace.users), (vec!["2".to_string(), "13".into()], vec!["32".to_string(), "28".into()]));
}

#[test]
fn philly_rows_are_sorted_and_duplicates_stay() {
    let trace = read(
        b"timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n\
        2017-10-09 06:13:03,2951.0,12,2951.0,6214e9\n2017-10-09 06:13:03,2951.0,12,2951.0,6214e9\n2017-10-09 07:30:00,0.0,1,0,11cb48\n\n",
    );
    let submits: Vec<i64> = trace.rows.iter().map(|row| row.submit_ms / 1000).collect();
    assert_eq!(submits, [0, 0, 2932, 4617]);
    assert_eq!((trace.bad_rows, trace.rows[3].work_ms), (0, 1000));
    assert_eq!(trace.users, trace.teams);
}

#[test]
fn our_rows_may_leave_fields_empty() {
    let trace = read(b"gpus_per_member,members,submit_s,work_s,on_preempt,time_limit_s,fails,user,min_runtime_s\n8,2,5.5,60,end,90,1,ann,\n4,1,6,60,,,,bob,0\n");
    let (first, second) = (trace.rows[0], trace.rows[1]);
    assert_eq!(
        (first.members, first.gpus, first.on_preempt, first.limit_ms, first.min_runtime_ms, first.outcome),
        (2, 8, Some(OnPreempt::End), 90_000, None, Outcome::Failed)
    );
    assert_eq!((second.submit_ms, second.on_preempt, second.limit_ms, second.min_runtime_ms), (500, None, 0, Some(0)));
}

#[test]
fn broken_rows_are_counted_with_line_and_reason() {
    let trace = read(b"submit_s,work_s,gpus,team\n0,10,1,a\nsoon,10,1,a\n3,10\n4,-5,1,a\n5,10,0,a\n6,10,1,\xff\xfe\n7,10,1,\xff\xfd\n");
    assert_eq!(trace.rows.len(), 3);
    assert_eq!(trace.bad_rows, 4);
    let shown: Vec<String> = trace.bad_examples.iter().map(|bad| format!("{}: {}", bad.line, bad.reason)).collect();
    assert_eq!(
        shown,
        [
            "3: `soon` is no time of submission",
            "4: has 2 fields, the header has 4",
            "5: `-5` is no run time",
            "6: `0` is no number of GPUs, at least 1",
        ]
    );
    let crlf = read(b"submit_s,work_s,gpus,team\r\n0,10,1,a\r\nsoon,10,1,a\r\n");
    assert_eq!(crlf.bad_examples[0].line, 3);
    assert_eq!(trace.teams.len(), 3, "names that differ in bytes stay apart");
}

#[test]
fn an_unknown_header_says_what_is_known() {
    let error = Trace::read(b"a,b,c\n1,2,3\n".as_slice(), Reading::default()).expect_err("no such form");
    assert!(error.contains("`a,b,c`") && error.contains("submit_s, work_s, gpus"), "{error}");
}
