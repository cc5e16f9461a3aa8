//! Logs with bytes changed, cut out and doubled: whatever comes out, nothing panics, and no row comes from nowhere.

use crate::random::mix;
use crate::trace::{Reading, Trace};

const TEXT: &str = "JobID|Account|User|SubmitLine|State|Submit|Start|End|Elapsed|Timelimit|NNodes|ReqGRES|AllocTRES|ExitCode\n\
    7|nlp|ann|srun a|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T11:01:00|01:00:00|02:00:00|1|gpu:2|cpu=8,gres/gpu=4,gres/gpu:a100=4|0:0\n\
    7.batch|nlp||x|COMPLETED|2023-05-01T10:00:00|2023-05-01T10:01:00|2023-05-01T11:01:00|01:00:00||1||cpu=8|0:0\n\
    8_[1-9%2]|nlp|ann|srun \"a\nb | c\"|PENDING|2023-05-01T10:00:00|Unknown|Unknown|00:00:00|UNLIMITED|0|gpu:a100:4(S:0,3)||0:0\n\
    9+1|cv|bob|x|CANCELLED by 5|1682935200|1682935300|4294967295|7-11:33:12|4294967295|2|gpu:1|1=8,1001=8|35072\n";

const JSON: &str = r#"{"meta": {"a": [1]}, "jobs": [{"account": "nlp", "allocation_nodes": 2, "array": {"job_id": 7, "task_id": {"set": true, "number": 3}},
    "time": {"elapsed": 120, "eligible": 1682935260, "end": 1682935420, "start": 1682935300, "submission": 1682935200, "limit": {"set": true, "infinite": false, "number": 60}},
    "het": {"job_id": 0}, "job_id": 9, "state": {"current": ["TIMEOUT"]}, "steps": [{}, {}], "user": "ann \" \\ ]",
    "tres": {"allocated": [{"type": "gres", "name": "gpu:a100", "count": 8}, {"type": "mem", "count": 9223372036854775807}]}},
    {"job_id": 10, "job_state": ["RUNNING"], "submit_time": {"set": true, "number": 1682935200}, "start_time": {"set": true, "number": 1682935200},
    "tres_per_node": "gres/gpu:4", "gres_detail": ["gpu:2(IDX:0-1)"]}], "errors": []}"#;

/// The text with a few changes, the same for the same seed.
fn changed(text: &[u8], seed: u64) -> Vec<u8> {
    let mut text = text.to_vec();
    let mut draw = seed;
    let mut below = |bound: usize| {
        draw = mix(draw.wrapping_add(0x9e37_79b9_7f4a_7c15));
        (draw % bound.max(1) as u64) as usize
    };
    for _ in 0..=below(6) {
        let (at, length) = (below(text.len()), below(40));
        let end = (at + length).min(text.len());
        match below(6) {
            0 if at < text.len() => text[at] = below(256) as u8,
            1 => drop(text.drain(at..end)),
            2 => {
                let piece = text[at..end].to_vec();
                let to = below(text.len());
                text.splice(to..to, piece);
            }
            3 => text.truncate(at.max(1)),
            4 => {
                let odd: [&[u8]; 8] = [b"\"", b"|", b"\n", b"99999999999999999999", b"\xff\0", b"[{", b"}]", b",,"];
                text.splice(at..at, odd[below(odd.len())].iter().copied());
            }
            _ => {
                let digit = text.iter().skip(at).position(u8::is_ascii_digit);
                if let Some(digit) = digit {
                    text[at + digit] = b'9';
                }
            }
        }
    }
    text
}

#[test]
fn changed_logs_do_no_harm() {
    let comma = TEXT.replace('|', ",");
    let mut rows = 0;
    for log in [TEXT, JSON, &comma] {
        for seed in 0..4000 {
            let bytes = changed(log.as_bytes(), seed);
            let Ok(trace) = Trace::read(bytes.as_slice(), Reading::default()) else { continue };
            assert!(trace.rows.len() as u64 + trace.bad_rows <= 40, "seed {seed}: more rows than the log has lines");
            assert!(trace.rows.iter().all(|row| row.gpus > 0 && row.work_ms >= 0 && row.limit_ms >= 0), "seed {seed}");
            rows += trace.rows.len();
        }
    }
    assert!(rows > 5000, "most changes leave most rows: {rows}");
}

#[test]
fn long_and_deep_logs_stay_within_bounds() {
    let header = "JobID,Account,Start,Elapsed,AllocTRES,Comment\n";
    let logs = [
        // A record that never ends, in small pieces.
        format!("{header}1,nlp\n{}", "x\n".repeat(300_000)),
        // A quote that never closes.
        format!("{header}{}", "1,\"nlp\n".repeat(50_000)),
        // A line of delimiters only.
        format!("{header}{}\n", ",".repeat(900_000)),
        format!("{header}1,nlp,{}\n", "\"a\",".repeat(200_000)),
        // Lists that never end.
        format!("{header}1,nlp,2023-05-01T10:00:00,60,gres/gpu={},x\n", "a=1,".repeat(200_000)),
        format!("[{}", "{\"job_id\": [".repeat(100_000)),
        format!("{{\"jobs\": [{}", "[".repeat(100_000)),
        format!("{{\"{}\": 1}}", "a".repeat(1 << 20)),
        format!("{{\"jobs\": [{{\"job_id\": 1, \"nodes\": \"{}\"}}]}}", "\\".repeat(1 << 20)),
    ];
    for log in logs {
        if let Ok(trace) = Trace::read(log.as_bytes(), Reading::default()) {
            assert!(trace.rows.is_empty() && trace.bad_rows > 0, "{}", &log[..60]);
        }
    }
}
