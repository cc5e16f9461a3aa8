use super::{bad, read, reasons, rows};
use crate::trace::{Reading, TeamFrom, Trace};

const HEADER: &str = "JobID|Account|User|State|Submit|Start|End|Timelimit|AllocTRES";

fn log(lines: &[&str]) -> String {
    format!("{HEADER}\n{}\n", lines.join("\n"))
}

#[test]
fn any_delimiter_with_or_without_one_at_the_end() {
    let header = HEADER.to_owned();
    let line = "7|nlp|ann|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T11:01:00|02:00:00|cpu=8~gres/gpu=4~node=1";
    for delimiter in ["|", "|#", "☃", "\t", ";", "^", "||", " | ", ","] {
        for end in ["", delimiter] {
            let write = |text: &str| format!("{}{end}", text.replace('|', delimiter).replace('~', ","));
            for newline in ["\n", "\r\n"] {
                let trace = read([write(&header), write(line), String::new()].join(newline));
                assert_eq!(rows(&trace), ["nlp ann 1x4 3600s 120m completed"], "{delimiter} {end} {newline:?} {:?}", bad(&trace));
                assert_eq!(trace.bad_rows, 0);
            }
        }
    }
}

#[test]
fn columns_in_any_order_and_a_mark_before_the_first() {
    let trace = read(
        "\u{feff}AllocTRES|End|NNodes|ElapsedRaw|JobID|Start|JobName|State|Start\ngres/gpu=16|Unknown|2|90|5|2023-05-01T10:01:00|x|RUNNING|never\n",
    );
    assert_eq!(rows(&trace), ["unknown unknown 2x8 90s 0m still running"]);
}

#[test]
fn a_table_of_fixed_width() {
    let trace = read(
        "JobID           Account      State               Start  Elapsed                      AllocTRES \n\
         ------------ ---------- ---------- ------------------- -------- ------------------------------ \n\
         7                   nlp  CANCELLED+ 2023-05-01T10:01:00 01:00:00       gres/gpu=2,mem=4G,node=1 \n\
         7.batch             nlp  CANCELLED  2023-05-01T10:01:00 01:00:01       gres/gpu=2,mem=4G,node=1 \n"
            .replace("nlp  CANCELLED", "nlp CANCELLED"),
    );
    assert_eq!((rows(&trace), reasons(&trace)), (vec!["nlp nlp 1x2 3600s 0m cancelled".to_owned()], vec!["1 steps of jobs".to_owned()]));
}

#[test]
fn columns_without_a_header() {
    let line = "7☃train☃ann☃gpu☃n1☃2☃16☃☃TIMEOUT☃2023-05-01T10:00:00☃2023-05-01T10:01:00☃2023-05-01T12:01:00☃02:00:00☃02:00:00☃☃☃☃☃☃☃☃\
                cpu=16,gres/gpu=4☃cpu=16,gres/gpu:v100=4,gres/gpu=4☃☃☃☃☃☃☃☃☃☃☃☃☃☃☃\n";
    let known = read(line);
    assert_eq!(rows(&known), ["gpu ann 2x2 7200s 120m timed out"]);
    assert_eq!(known.pools[known.rows[0].pools as usize], ["v100"]);
    let named = |columns: &str, text: &str| {
        let reading = Reading { columns: Some(columns.to_owned()), team_from: vec![TeamFrom::User], ..Reading::default() };
        Trace::read(text.as_bytes(), reading)
    };
    let text = "ann|7||2023-05-01T10:01:00|60|gpu:2|\nbob|8|FAILED|2023-05-01T10:02:00|60|gpu:2|\n";
    let trace = named("User,JobID,State,Start,ElapsedRaw,AllocGRES", text).expect("it has these columns");
    assert_eq!(rows(&trace), ["ann ann 2 60s 0m still running", "bob bob 2 60s 0m failed"]);
    let error = named("User,JobID", text).expect_err("these are too few");
    assert!(error.contains("User,JobID") && error.contains("delimiter"), "{error}");
}

#[test]
fn a_header_that_cannot_be_used_says_what_is_missing() {
    let error = |header: &str| Trace::read(header.as_bytes(), Reading::default()).expect_err("it lacks something");
    assert!(error("JobID|State|AllocTRES\n").contains("Submit, Start and End"));
    assert!(error("JobID|State|Start\n").contains("Elapsed"));
}

#[test]
fn only_the_job_itself_counts() {
    let trace = read(log(&[
        "7|nlp|ann|CANCELLED by 1185300516|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T11:01:00|02:00:00|gres/gpu=4",
        "7.batch|nlp||CANCELLED|2023-05-01T10:01:00|2023-05-01T10:01:00|2023-05-01T11:01:30||gres/gpu=4",
        "7.extern|nlp||COMPLETED|2023-05-01T10:01:00|2023-05-01T10:01:00|2023-05-01T11:09:00||gres/gpu=4",
        "7.0|nlp||CANCELLED|2023-05-01T10:01:00|2023-05-01T10:01:00|2023-05-02T11:01:00||gres/gpu=4",
        "8.interactive|nlp||COMPLETED|2023-05-01T10:01:00|2023-05-01T10:01:00|2023-05-02T11:01:00||gres/gpu=4",
    ]));
    assert_eq!((rows(&trace), reasons(&trace)), (vec!["nlp ann 4 3600s 120m cancelled".to_owned()], vec!["4 steps of jobs".to_owned()]));
}

#[test]
fn tasks_of_an_array_and_those_that_still_wait() {
    let trace = read(log(&[
        "7_1|nlp|ann|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T10:02:00|30:00|gres/gpu=1",
        "7_2|nlp|ann|FAILED|2023-05-01T10:00:00|2023-05-01T10:02:00|2023-05-01T10:04:00|30:00|gres/gpu=1",
        "7_[3-8%1]|nlp|ann|PENDING|2023-05-01T10:00:00|Unknown|Unknown|30:00|",
    ]));
    assert_eq!(rows(&trace), ["nlp ann 1 60s 30m completed", "nlp ann 1 120s 30m failed"]);
    assert_eq!(reasons(&trace), ["1 jobs without a GPU", "1 tasks of an array that wait together"]);
}

#[test]
fn components_of_a_heterogeneous_job_are_one_gang() {
    let trace = read(
        "JobID|JobIDRaw|Account|User|State|Submit|Start|End|NNodes|AllocTRES\n\
         7+1|8|nlp|ann|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T11:00:00|2|gres/gpu=16\n\
         7+0|7|nlp|ann|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T11:01:00|1|cpu=4,gres/gpu=8\n\
         7+2|9|nlp|ann|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T11:01:00|1|cpu=64\n\
         7+0.batch|7.batch|nlp||COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T11:01:00|1|cpu=4\n",
    );
    assert_eq!(rows(&trace), ["nlp ann 4x6 3600s 0m completed"]);
    assert_eq!(reasons(&trace), ["1 steps of jobs", "1 heterogeneous jobs"]);
}

#[test]
fn attempts_of_a_requeued_job_are_one_workload() {
    let trace = read(log(&[
        "7|nlp|ann|COMPLETED|2023-05-01T13:00:00|2023-05-01T14:00:00|2023-05-01T15:00:00|06:00:00|gres/gpu=4",
        "7|nlp|ann|PREEMPTED|2023-05-01T12:00:00|2023-05-01T12:30:00|2023-05-01T13:00:00|06:00:00|gres/gpu=4",
        "7|nlp|ann|NODE_FAIL|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T12:00:00|06:00:00|gres/gpu=4",
        // The number again, long after, by somebody else.
        "7|cv|bob|COMPLETED|2024-05-01T10:00:00|2024-05-01T10:01:00|2024-05-01T10:02:00|06:00:00|gres/gpu=4",
    ]));
    assert_eq!(rows(&trace), ["nlp ann 4 12540s 360m completed", "cv bob 4 60s 360m completed"]);
    assert_eq!(reasons(&trace), ["1 requeued jobs"]);
    let first = trace.rows[0];
    assert_eq!((first.submit_ms, first.start_ms, first.end_ms), (0, Some(60_000), Some(5 * 3_600_000)));
}

#[test]
fn a_record_that_is_there_twice_counts_once() {
    let trace = read(log(&[
        "7|nlp|ann|RUNNING|2023-05-01T10:00:00|2023-05-01T10:01:00|Unknown|02:00:00|gres/gpu=4",
        "8|nlp|ann|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T10:31:00|02:00:00|gres/gpu=4",
        HEADER,
        "7|nlp|ann|TIMEOUT|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T12:01:10|02:00:00|gres/gpu=4",
        "8|nlp|ann|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T10:31:00|02:00:00|gres/gpu=4",
    ]));
    assert_eq!(rows(&trace), ["nlp ann 4 7210s 120m timed out", "nlp ann 4 1800s 120m completed"]);
    assert_eq!(reasons(&trace), ["2 records that the log has twice"]);
}

#[test]
fn work_that_never_started() {
    let trace = read(
        "JobID|User|State|Submit|Start|End|Elapsed|NodeList|ReqTRES|AllocTRES\n\
         1|ann|CANCELLED by 5|2023-05-01T10:00:00|None|2023-05-01T10:01:00|00:00:00|None assigned|gres/gpu=1|\n\
         2|ann|CANCELLED by 5|2023-05-01T10:00:01|2023-05-01T10:01:00|2023-05-01T10:01:00|00:00:00|None assigned|gres/gpu=1|\n\
         3|ann|PENDING|2023-05-01T10:00:02|Unknown|Unknown|00:00:00|None assigned|gres/gpu=1|\n\
         4|ann|DEADLINE|2023-05-01T10:00:03|None|2023-05-01T10:01:00|00:00:00|None assigned|gres/gpu=1|\n\
         5|ann|NODE_FAIL|2023-05-01T10:00:04|None|2023-05-01T10:01:00|00:00:00|None assigned|gres/gpu=1|gres/gpu=1\n\
         6|ann|FAILED|2023-05-01T10:00:05|2023-05-01T10:01:00|2023-05-01T10:01:00|00:00:00|n1|gres/gpu=1|gres/gpu=1\n\
         7|ann|BOOT_FAIL|2023-05-01T10:00:06|2023-05-01T10:01:00|2023-05-01T10:03:00|00:02:00|n1|gres/gpu=1|gres/gpu=1\n",
    );
    let ended: Vec<String> = rows(&trace).iter().map(|row| row["unknown ann 1 ".len()..].to_owned()).collect();
    let expected = [
        "0s 0m cancelled",
        "0s 0m cancelled",
        "0s 0m still waiting",
        "0s 0m timed out",
        "0s 0m node failed",
        "1s 0m failed",
        "120s 0m node failed",
    ];
    assert_eq!(ended, expected);
}

#[test]
fn work_that_still_runs() {
    let trace = read(log(&[
        "1|nlp|ann|RUNNING|2023-05-01T10:00:00|2023-05-01T10:00:00|Unknown|1-00:00:00|gres/gpu=1",
        "2|nlp|ann|SUSPENDED|2023-05-01T10:30:00|2023-05-01T11:00:00|Unknown|UNLIMITED|gres/gpu=1",
        "3|nlp|ann|RUNNING|2023-04-01T10:00:00|2023-04-01T11:00:00|Unknown|5-00:00:00|gres/gpu=1",
        "4|nlp|ann|COMPLETED|2023-05-01T10:00:00|2023-05-01T11:00:00|2023-05-01T12:00:00|Partition_Limit|gres/gpu=1",
        "5|nlp|ann|PREEMPTED|2023-05-01T08:00:00|2023-05-01T08:00:00|2023-05-01T09:00:00|1-00:00:00|gres/gpu=1",
        "5|nlp|ann|RUNNING|2023-05-01T09:00:00|2023-05-01T11:30:00|Unknown|1-00:00:00|gres/gpu=1",
    ]));
    // The log ends at 12:00. The third ran 30 days under a limit of 5: nobody told the accounting that it ended.
    let expected = [
        "1 432000s 7200m timed out",
        "1 5400s 1440m still running",
        "1 7200s 1440m still running",
        "1 3600s 0m completed",
        "1 3600s 0m still running",
    ];
    assert_eq!(rows(&trace), expected.map(|row| format!("nlp ann {row}")));
    assert_eq!(reasons(&trace), ["1 jobs that the log still calls running long after their time limit", "1 requeued jobs"]);
}

#[test]
fn a_field_that_goes_on_over_lines_or_holds_the_delimiter() {
    let trace = read(
        "JobID|Account|SubmitLine|State|Start|Elapsed|AllocTRES|Comment\n\
         1|nlp|sbatch --wrap \"\n  python a.py | tee log\n|true\n\"|COMPLETED|2023-05-01T10:00:00|00:01:00|gres/gpu=1|\n\
         2|nlp|srun a|b|c|FAILED|2023-05-01T10:00:01|00:01:00|gres/gpu=2|\n\
         3|nlp|srun a|COMPLETED|2023-05-01T10:00:02|00:01:00|gres/gpu=3|x|y\n\
         4|nlp|srun lost its end\n\
         5|nlp|srun a|COMPLETED|2023-05-01T10:00:03|00:01:00|gres/gpu=4|\n\
         6|nlp|srun a|b|c|d|e|f|g|h\n",
    );
    assert_eq!(trace.rows.iter().map(|row| row.gpus).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(bad(&trace), ["8: has 3 fields, the header has 8", "10: has 10 fields, the header has 8"]);
}

#[test]
fn commas_between_and_inside_of_fields() {
    let trace = read(
        "JobID,Account,JobName,NodeList,State,Start,Elapsed,ReqTRES,AllocTRES,Comment\n\
         1,nlp,a,n[1-2,7],COMPLETED,2023-05-01T10:00:00,00:01:00,cpu=8,gres/gpu=8,node=2,cpu=8,gres/gpu=8,mem=4G,node=2,\n\
         2,nlp,\"a, \"\"b\"\"\nc\",n1,COMPLETED,2023-05-01T10:00:01,00:01:00,,\"cpu=8,gres/gpu=3\",\"\"\n\
         3,nlp,a,b,n1,COMPLETED,2023-05-01T10:00:02,00:01:00,,gres/gpu=2,\n",
    );
    assert_eq!(bad(&trace), [""; 0]);
    assert_eq!(trace.rows.iter().map(|row| row.all_gpus()).collect::<Vec<_>>(), [8, 3, 2]);
    let quoted = read("\"JobID\",\"Start\",\"ElapsedRaw\",\"AllocTRES\"\n\"1\",\"2023-05-01T10:00:00\",\"60\",\"gres/gpu=2\"\n");
    assert_eq!(rows(&quoted), ["unknown unknown 2 60s 0m still running"]);
}

#[test]
fn the_forms_of_the_database() {
    let trace = read(
        "id_job\tid_array_job\tid_array_task\thet_job_id\thet_job_offset\taccount\tid_user\tstate\ttime_submit\ttime_eligible\ttime_start\ttime_end\t\
         timelimit\tnodes_alloc\ttres_alloc\texit_code\tmem_req\n\
         11\t10\t3\t0\t4294967294\tnlp\t501\t5\t1682935200\t1682935260\t1682935300\t1682935400\t4294967295\t1\t1=8,2=1024,4=1,1001=8\t35072\t9223372036854775808\n\
         12\t0\t4294967294\t0\t4294967294\tnlp\t501\t3\t1682935201\t1682935201\t1682935300\t1682935400\t60\t1\t1=8,1001=2\t0\t9.22e18\n\
         13\t0\t4294967294\t0\t4294967294\tnlp\t501\t4\t1682935202\t1682935202\t0\t1682935400\t60\t0\t\t0\t0\n",
    );
    assert_eq!(rows(&trace), ["nlp 501 1x2 100s 60m completed", "nlp 501 1x8 100s 0m failed"]);
    assert_eq!((trace.rows[1].cpus, trace.rows[1].memory_mib), (8, 1024));
    assert_eq!(reasons(&trace), ["1 jobs without a GPU"]);
}

#[test]
fn gpus_of_a_node_by_the_number_of_nodes_and_what_was_had_before_what_was_asked() {
    let trace = read(
        "JobID|Start|Elapsed|AllocNodes|AllocGRES|ReqGRES|ReqTRES|AllocTRES\n\
         1|2023-05-01T10:00:00|00:01:00|4|gpu:a100:8(S:0-1)|gpu:8||cpu=64\n\
         2|2023-05-01T10:00:01|00:01:00|3||gpu:2|cpu=8|cpu=8\n\
         3|2023-05-01T10:00:02|00:01:00|1|gpu:1|gpu:1|gres/gpu=2|gres/gpu=7,gres/gpu:t4=7\n\
         4|2023-05-01T10:00:03|00:01:00|1||||cpu=8,gres/gpumem=4G\n",
    );
    let gangs: Vec<(u32, u32)> = trace.rows.iter().map(|row| (row.members, row.gpus)).collect();
    assert_eq!(gangs, [(4, 8), (3, 2), (1, 7)]);
    assert_eq!(reasons(&trace), ["1 jobs without a GPU"]);
}

#[test]
fn records_that_cannot_be_read_are_counted_with_line_and_value() {
    let long = format!("1|nlp|{}|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|Unknown||gres/gpu=1", "x".repeat(3 << 20));
    let mut text = b"sacct: error: the database was away\n".to_vec();
    text.extend(
        log(&[
            "x|nlp|ann|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|Unknown||gres/gpu=1",
            "2|nlp|ann|DONE|2023-05-01T10:00:00|2023-05-01T10:01:00|Unknown||gres/gpu=1",
            "3|nlp|ann|COMPLETED|then|2023-05-01T10:01:00|Unknown||gres/gpu=1",
            "4|nlp|ann|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|Unknown||gres/gpu=few",
            &long,
            "6|nlp|ann|PENDING|Unknown|Unknown|Unknown||gres/gpu=1",
            "",
        ])
        .into_bytes(),
    );
    text.extend(b"7|n\xff\0p|a\xfen|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T10:02:00||gres/gpu=1\n");
    let trace = read(text);
    assert_eq!(
        bad(&trace),
        [
            "3: `x` is no job's number",
            "4: `DONE` is no state",
            "5: `then` is no time of submission",
            "6: `gres/gpu=few` is no list of resources",
            "7: longer than 1024 KiB",
        ]
    );
    assert_eq!((trace.bad_rows, trace.rows.len()), (6, 1));
}

#[test]
fn eligible_time_is_when_it_begins_to_wait() {
    let trace = read(
        "JobID|Submit|Eligible|Start|Elapsed|AllocTRES\n\
         1|2023-05-01T10:00:00|2023-05-01T10:00:00|2023-05-01T10:01:00|00:01:00|gres/gpu=1\n\
         2|2023-05-01T10:00:00|2023-05-01T10:30:00|2023-05-01T10:31:00|00:01:00|gres/gpu=2\n\
         3|2023-05-01T10:00:00|Unknown|2023-05-01T10:31:00|00:01:00|gres/gpu=3\n",
    );
    let arrivals: Vec<(u32, i64)> = trace.rows.iter().map(|row| (row.gpus, row.arrival_ms() / 60_000)).collect();
    assert_eq!(arrivals, [(1, 0), (3, 0), (2, 30)]);
}

/// Clocks are set while jobs run, and an accounting is repaired by hand: such rows are read, by a rule that is counted, or not, and counted.
#[test]
fn times_that_cannot_be() {
    let header = "JobID|State|Submit|Eligible|Start|End|Elapsed|AllocTRES\n";
    let row = |times: &str| format!("{header}7|COMPLETED|{}|gres/gpu=4\n", times.replace('~', "2023-05-01T"));
    let early = read(row("~10:00:00|~10:05:00|~09:00:00|~11:00:00|02:00:00"));
    assert_eq!(reasons(&early), ["1 jobs that started before they were submitted, or could start"]);
    assert_eq!((early.ruled[0].first_line, early.rows[0].arrival_ms(), early.rows[0].start_ms), (2, 0, Some(0)));
    let before_it_could = read(row("~10:00:00|~12:00:00|~11:00:00|~13:00:00|02:00:00"));
    assert_eq!((before_it_could.ruled[0].rows, before_it_could.rows[0].start_ms), (1, Some(0)));
    let back = read(row("~09:00:00|~09:00:00|~10:00:00|~09:30:00|00:30:00"));
    assert_eq!(reasons(&back), ["1 jobs that ended before they started"]);
    assert_eq!((back.rows[0].start_ms, back.rows[0].end_ms, back.rows[0].work_ms), (Some(3_600_000), Some(5_400_000), 1_800_000));
    let untold = read(row("~09:00:00|~09:00:00|~10:00:00|~09:30:00|"));
    assert_eq!(bad(&untold), ["2: ends before it starts, and does not say how long it ran"]);
    assert!(reasons(&read(row("~09:00:00|~09:00:00|~10:00:00|~10:30:00|00:30:00"))).is_empty());
}

/// Where neither a state nor an exit code is asked for nobody knows how a job ended.
#[test]
fn without_a_state_an_end_is_unknown() {
    let trace = read("JobID|Submit|Start|End|AllocTRES\n7|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T11:01:00|gres/gpu=4\n");
    assert_eq!(rows(&trace), ["unknown unknown 4 3600s 0m unknown"]);
}

/// Programs for tables number the rows, make fractions of whole numbers where some are missing, and write times in their own way.
#[test]
fn a_log_that_went_through_a_program_for_tables() {
    let header = ",JobID,JobName,State,Submit,Start,End,Elapsed,NNodes,Timelimit,AllocTRES\n";
    let rows_of = |first: &str| {
        let line = "12,train,COMPLETED,1682935200,1682935260.0,1682938860.0,0 days 01:00:00,2.0,120.0,\"cpu=8,gres/gpu=4\"\n";
        let open = "13,train,RUNNING,1682935200,1682935260.0,NaT,0 days 00:10:00,nan,nan,gres/gpu=4\n";
        read(format!("{first}{}0,{line}1,{open}", &header[1..]))
    };
    for first in [",", "\"\","] {
        let trace = rows_of(first);
        assert_eq!(
            rows(&trace),
            ["unknown unknown 2x2 3600s 120m completed", "unknown unknown 4 600s 0m still running"],
            "{:?}",
            bad(&trace)
        );
    }
}
