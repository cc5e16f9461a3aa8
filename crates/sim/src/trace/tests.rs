use super::*;
use crate::job::Ends;

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
    assert_eq!((trace.rows[1].submit_ms, trace.rows[1].outcome.ends(), trace.rows[1].priority), (60_000, Ends::Failed, 2));
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

#[test]
fn what_a_file_says_cannot_move_a_terminals_cursor() {
    let trace = read(b"submit_s,work_s,gpus,team\n0,10,1,a\x1b[2J\n\x1b[1A,10,1,a\n");
    assert_eq!(trace.teams, ["a\u{fffd}[2J"]);
    assert_eq!(trace.bad_examples[0].reason, "`\u{fffd}[1A` is no time of submission");
    let header = Trace::read(b"a\x1b[31mred,b\n1,2\n".as_slice(), Reading::default()).expect_err("no such form");
    assert!(header.contains("`a\u{fffd}[31mred,b`"), "{header}");
}

#[test]
fn standard_workload_format() {
    let trace = read(
        b"; Computer: SP2\n; UnixStartTime: 1000000000\n\n\
        1 100 10 3600 8 -1 -1 8 7200 1024 1 3 1 -1 1 2 -1 -1\n2 50 5 60 -1 -1 -1 4 60 -1 0 4 1 7 1 2 1 30\n\
        3 200 0 30 4 -1 -1 4 60 -1 3 4 1 7 1 2 -1 -1\n4 300 90 -1 -1 -1 -1 4 60 -1 5 -1 -1 7 1 -1 -1 -1\n5 400 1 -1 4 -1 -1 4 60 -1 1 4 1\n6 x 1 1 1\n",
    );
    assert_eq!((trace.rows.len(), trace.bad_rows, trace.epoch_ms), (3, 1, Some(1_000_000_050_000)));
    let [second, first, cancelled] = [trace.rows[0], trace.rows[1], trace.rows[2]];
    assert_eq!((first.submit_ms, first.start_ms, first.end_ms), (50_000, Some(60_000), Some(3_660_000)));
    assert_eq!((first.gpus, first.limit_ms, first.memory_mib, first.outcome), (8, 7_200_000, 8, Outcome::Completed));
    assert_eq!((second.gpus, second.outcome, second.depends), (4, Outcome::Failed, true));
    assert_eq!((cancelled.work_ms, cancelled.start_ms, cancelled.outcome), (0, None, Outcome::Cancelled));
    assert_eq!(
        (&trace.users[cancelled.user as usize], trace.pools[first.pools as usize].as_slice()),
        (&"unknown".to_string(), ["2".to_string()].as_slice())
    );
    let skipped: Vec<(&str, u64)> = trace.skipped.iter().map(|one| (one.reason, one.first_line)).collect();
    assert_eq!(skipped, [("a partial execution: the line of the whole job has its sum", 6), ("its run time is unknown", 8)]);
    assert!(read(b"1 0 0 60 00 -1 -1 0 60 -1 1\n").skipped[0].reason.contains("processors"), "no processors, however they are written");
    let halved = Trace::read(b"1 0 0 60 5 -1 -1 5 60 -1 1\n".as_slice(), Reading { procs_per_gpu: 2, ..Reading::default() })
        .expect("no header is needed");
    assert_eq!(halved.rows[0].gpus, 3);
}

#[test]
fn openb_pods() {
    let trace = read(
        b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
        a,12500,16384,1,460,,LS,Running,100,900,110\nb,8000,1024,2,1000,V100M16|V100M32,BE,Running,50,800,60\n\
        c,8000,1024,1,1000,G2,BE,Pending,170,900,\nd,8000,1024,0,0,,LS,Running,7,900,8\ne,8000,1024,1,1000,G2,LS,Running,180,,190\n",
    );
    let outcomes: Vec<Outcome> = trace.rows.iter().map(|row| row.outcome).collect();
    assert_eq!(outcomes, [Outcome::Unknown, Outcome::Running, Outcome::Waiting, Outcome::Running]);
    let works: Vec<i64> = trace.rows.iter().map(|row| row.work_ms / 1000).collect();
    assert_eq!(works, [740, 790, 0, 710], "what was never deleted ran to the file's last moment");
    assert_eq!((trace.rows[0].pools, &trace.pools[1]), (1, &vec!["V100M16".to_string(), "V100M32".into()]));
    assert_eq!((trace.rows[1].gpus, trace.rows[1].cpus, trace.ruled[0].rows, trace.skipped[0].rows), (1, 13, 1, 1));
    assert_eq!(trace.teams, ["LS", "BE"]);
}

#[test]
fn other_files_say_what_they_are() {
    let wrong = |text: &[u8]| Trace::read(text, Reading::default()).expect_err("no trace");
    assert_eq!(wrong(b""), "the file is empty");
    assert!(wrong(b"sn,cpu_milli,memory_mib,gpu,model\nn,1,1,1,T4\n").contains("list of nodes"));
    assert!(wrong(b"vc,node num\na,1\n").contains("shares_file"));
    assert!(wrong(b"\xff\xfes\0u\0b\0").contains("iconv -f UTF-16"));
    assert!(wrong(b"PK\x03\x04\0\0").contains("zip archive"));
    assert!(wrong(b"submit_s;work_s;gpus\n0;1;1\n").contains("separated by semicolons, those of a CSV by commas"));
    assert!(wrong(b"timestamp\tduration\tnum_gpus\n").contains("separated by tabs"));
    assert!(!wrong(b"a;b\n").contains("separated"), "it would be unknown with commas, too");
    let mut tar = vec![0; 512];
    tar[257..262].copy_from_slice(b"ustar");
    assert!(wrong(&tar).contains("unpack it"));
}

/// What a decoder says is of no use to anybody; how far the file is whole, and what to do, is.
#[test]
fn a_packed_file_that_is_cut_off_or_damaged_says_where_and_what_to_do() {
    use std::io::Write;
    let text: String = (0..2000).map(|at| format!("{},{},1,team{}\n", at * 7, at % 977 + 1, at * at % 89)).collect();
    let text = format!("submit_s,work_s,gpus,team\n{text}");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let gz = gz.write_all(text.as_bytes()).and_then(|()| gz.finish()).expect("memory takes it");
    let zst = zstd::encode_all(text.as_bytes(), 1).expect("memory takes it");
    for (packed, by) in [(&gz, "gzip"), (&zst, "zstd")] {
        let mut torn = packed.clone();
        torn.truncate(packed.len() - 9);
        let mut damaged = packed.clone();
        damaged[packed.len() / 2..].fill(0xa5);
        for file in [&torn, &damaged, &packed[..7].to_vec()] {
            let error = Trace::read(file.as_slice(), Reading::default()).expect_err("its end is missing");
            let (place, next) = (format!("what {by} packed is cut off or damaged after line "), format!("`{by} -dc FILE > PART`"));
            assert!(error.starts_with(&place) && error.contains(&next), "{error}");
        }
    }
}
