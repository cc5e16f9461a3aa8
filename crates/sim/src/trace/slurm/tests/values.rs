use crate::trace::slurm::id::{self, JobId, Named};
use crate::trace::slurm::state::State;
use crate::trace::slurm::tres::{mebibytes, resources};
use crate::trace::slurm::value::{failed, instant, length, limit, quantity};

#[test]
fn instants() {
    let day = 1_693_484_987_000;
    for (text, expected) in [
        ("2023-08-31T12:29:47", Ok(Some(day))),
        ("2023-08-31 12:29:47", Ok(Some(day))),
        ("2023-08-31T12:29:47.125", Ok(Some(day))),
        ("2023-08-31T14:29:47+0200", Ok(Some(day))),
        ("2023-08-31T09:59:47.5-02:30", Ok(Some(day))),
        ("2023-08-31T12:29:47Z", Ok(Some(day))),
        ("1693484987", Ok(Some(day))),
        ("0", Ok(None)),
        ("4294967294", Ok(None)),
        ("4294967295", Ok(None)),
        ("Unknown", Ok(None)),
        ("None", Ok(None)),
        ("", Ok(None)),
        ("yesterday", Err(())),
        ("2023-08-31", Err(())),
        ("2023-08-31T12:29:47+", Err(())),
        ("2023-02-30T12:29:47", Err(())),
        ("2023-08-31T12:29:4☃", Err(())),
    ] {
        assert_eq!(instant(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn lengths() {
    let hours = |h: i64, m: i64, s: i64| Ok(Some(((h * 60 + m) * 60 + s) * 1000));
    for (text, expected) in [
        ("7-11:33:12", hours(7 * 24 + 11, 33, 12)),
        ("1-05:50:00", hours(29, 50, 0)),
        ("1-05:50", hours(29, 50, 0)),
        ("1-05", hours(29, 0, 0)),
        ("00:12:01", hours(0, 12, 1)),
        ("30:00", hours(0, 30, 0)),
        ("01:35.654", Ok(Some(95_654))),
        ("86400", hours(24, 0, 0)),
        ("3600.0", hours(1, 0, 0)),
        ("1 days 05:50:00", hours(29, 50, 0)),
        ("NaT", Ok(None)),
        ("", Ok(None)),
        ("INVALID", Ok(None)),
        ("1-2:3:4:5", Err(())),
        ("-1:00:00", Err(())),
        ("ten", Err(())),
        ("99999999999-00:00:00", Ok(Some(3_153_600_000_000))),
    ] {
        assert_eq!(length(text.as_bytes(), 1000), expected, "{text}");
    }
}

#[test]
fn limits() {
    for (text, minutes) in [
        ("1-05:50:00", 1790),
        ("30:00", 30),
        ("1440", 1440),
        ("1440.0", 1440),
        ("UNLIMITED", 0),
        ("Partition_Limit", 0),
        ("", 0),
        ("4294967295", 0),
        ("4294967294", 0),
    ] {
        assert_eq!(limit(text.as_bytes()), Ok(minutes * 60_000), "{text}");
    }
    assert_eq!(limit(b"soon"), Err(()));
}

#[test]
fn exit_codes_and_quantities() {
    for (text, expected) in [
        ("0:0", Ok(Some(false))),
        ("0:9", Ok(Some(true))),
        ("1:0", Ok(Some(true))),
        ("35072", Ok(Some(true))),
        ("0", Ok(Some(false))),
        ("", Ok(None)),
        ("x:1", Err(())),
    ] {
        assert_eq!(failed(text.as_bytes()), expected, "{text}");
    }
    for (text, expected) in [
        ("8", Ok(Some(8))),
        ("8.0", Ok(Some(8))),
        ("nan", Ok(None)),
        ("2K", Ok(Some(2048))),
        ("1.50K", Ok(Some(1536))),
        ("", Ok(None)),
        ("4294967294", Ok(None)),
        ("-1", Err(())),
        ("99999999999", Err(())),
        ("many", Err(())),
    ] {
        assert_eq!(quantity(text.as_bytes()), expected, "{text}");
    }
    for (text, expected) in [
        ("2252800K", 2200),
        ("0.00K", 0),
        ("64G", 65_536),
        ("1280.50G", 1_311_232),
        ("60T", 62_914_560),
        ("512", 512),
        ("9.22e18", 0),
        ("9223372036854775808", 0),
        ("?", 0),
    ] {
        assert_eq!(mebibytes(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn states() {
    for (text, expected) in [
        ("COMPLETED", Some(State::Completed)),
        ("CANCELLED by 1234", Some(State::Cancelled)),
        ("CANCELLED+", Some(State::Cancelled)),
        ("OUT_OF_ME+", Some(State::OutOfMemory)),
        ("OUT_OF_MEMORY", Some(State::OutOfMemory)),
        ("NODE_FAIL", Some(State::NodeFailed)),
        ("BOOT_FAIL", Some(State::BootFailed)),
        ("DEADLINE", Some(State::Deadline)),
        ("PREEMPTED", Some(State::Preempted)),
        ("REQUEUED", Some(State::Requeued)),
        ("TIMEOUT", Some(State::TimedOut)),
        ("RUNNING", Some(State::Running)),
        ("running", Some(State::Running)),
        ("RUNNING,COMPLETING", Some(State::Running)),
        ("SUSPENDED", Some(State::Suspended)),
        ("CD", Some(State::Completed)),
        ("3", Some(State::Completed)),
        ("8", Some(State::Preempted)),
        ("32770", Some(State::Suspended)),
        ("12", None),
        ("DONE", None),
        ("C+", None),
        ("", None),
    ] {
        assert_eq!(State::read(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn job_numbers() {
    let job = |job, task, component| Some(Named::Job(JobId { job, task, component }));
    for (text, expected) in [
        ("123", job(123, None, None)),
        ("123_4", job(123, Some(4), None)),
        ("123+0", job(123, None, Some(0))),
        ("123+12", job(123, None, Some(12))),
        ("123+", job(123, None, None)),
        ("123.batch", Some(Named::Step)),
        ("123.extern", Some(Named::Step)),
        ("123.interactive", Some(Named::Step)),
        ("123_4.0", Some(Named::Step)),
        ("123+1.0+2", Some(Named::Step)),
        ("200131.0", Some(Named::Step)),
        ("123_[7-8%1]", Some(Named::Tasks(JobId { job: 123, ..JobId::default() }))),
        ("123_[1-5,9,...]", Some(Named::Tasks(JobId { job: 123, ..JobId::default() }))),
        ("JobID", None),
        ("", None),
        ("_4", None),
        ("123x", None),
        ("123_", None),
        ("99999999999999999999", None),
    ] {
        assert_eq!(id::read(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn gpus_are_counted_once() {
    for (text, gpus, kind) in [
        ("billing=8,cpu=8,gres/gpu=8,gres/gpu:a100=8,mem=10G,node=1", 8, "a100"),
        ("gres/gpu:v100=1,gres/gpu=1", 1, "v100"),
        ("gres/gpu:a100=4,gres/gpu:h100=12", 16, "h100"),
        ("gres/gpu=2", 2, ""),
        ("gres/gpumem=20500736K,gres/gpuutil=90", 0, ""),
        ("cpu=8,mem=10G", 0, ""),
        ("1=96,2=1031168,4=1,5=96,1001=8", 8, ""),
        ("gpu:2", 2, ""),
        ("gpu", 1, ""),
        ("gpu:a100", 1, "a100"),
        ("gpu:2080ti:3", 3, "2080ti"),
        ("gpu:2080ti", 1, "2080ti"),
        ("gpu:a100:4(S:0-3),nsight:no_consume:1,pfsdir:scratch:no_consume:1", 4, "a100"),
        ("gpu:a100:2(IDX:0,3),gpu:t4:1(IDX:1)", 3, "a100"),
        ("gpu:gen:8(S:0-1)", 8, "gen"),
        ("gres/gpu:h100:4", 4, "h100"),
        ("gres/gpu:4", 4, ""),
        ("gres:gpu:2", 2, ""),
        ("", 0, ""),
    ] {
        let found = resources(text.as_bytes()).expect(text);
        assert_eq!((found.gpus, found.kind.unwrap_or_default()), (gpus, kind.as_bytes()), "{text}");
    }
    let machine = resources(b"1=96,2=1031168,1001=8").expect("the database's form");
    assert_eq!((machine.cpus, machine.memory), (96, 1_031_168));
    assert_eq!(resources(b"gres/gpu=many"), Err(()));
}
