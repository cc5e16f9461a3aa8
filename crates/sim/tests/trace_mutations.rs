//! No file, however broken, makes the reader panic or take memory out of proportion: seeded mutations of small files of every form.
//!
//! `MUTATIONS=100000 cargo test --release -p stipend-sim --test trace_mutations` looks longer.

use look::look;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use stipend_sim::random::mix;
use stipend_sim::trace::{Reading, Trace};

#[path = "../../../fuzz/look.rs"]
mod look;

/// Small files by hand, one of every form, with the oddities that the form has.
const FILES: &[&str] = &[
    "submit_s,work_s,gpus,team,user,min_runtime_s,time_limit_s,on_preempt,priority,fails,pools\n\
     0,3600,8,nlp,ann,3600,7200,resume,1,0,a100|h100\n60.5,7200,3,\"a, b\",bob,,,end,-2,1,\n",
    "job_id,submit_s,gpus,runtime_s,timelimit_s,min_runtime_s,user,team,class,status,priority\n\
     1,100,24,3968,4364,4364,32,2,medium,1,0\n2,160,16,14988,44964,28800,28,13,medium,5,2\n",
    "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\r\n\
     2017-10-09 06:13:03,2951.0,12,2951.0,6214e9\n\n",
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
     pod-0,12000,16384,1,460,,LS,Running,0,900,0\npod-1,8000,1024,2,1000,V100M16|V100M32,BE,Succeeded,5,800,60\n\
     pod-2,8000,1024,1,1000,G2,BE,Pending,7,900,\npod-3,8000,1024,0,0,,LS,Running,7,,8\n",
    "; Version: 2.2\n; UnixStartTime: 1038402000\n; MaxProcs: 128\n\n    1      0     10   3600    8  -1 -1    8  7200 -1 1  3  1 -1 1 -1 -1 -1\n\
     2 5 -1 -1 -1 -1 -1 16 7200 1000 5 4 1 -1 1 2 -1 -1\n3 9 0 60 4 12.5 100 4 60 -1 0 4 1 7 1 2 1 30\n4 9 0 60 4 -1 -1 4 60 -1 2 4 1 7 1 2 1 30\n",
    "{\"v\":1,\"t_ms\":0,\"event\":\"submitted\",\"workload\":\"a-1\",\"budget\":\"lab/nlp\",\"user\":\"ann\",\"pools\":[\"p0\"],\"members\":2,\"gpus_per_member\":8,\"min_runtime_ms\":60000,\"on_preempt\":\"resume\",\"priority\":0}\n\
     {\"t_ms\":0,\"event\":\"started\",\"workload\":\"a-1\",\"attempt\":1}\n{\"t_ms\":9000,\"event\":\"running\",\"workload\":\"a-1\",\"attempt\":1}\n\
     {\"t_ms\":90000,\"event\":\"ended\",\"workload\":\"a-1\",\"attempt\":1,\"outcome\":\"preempted\",\"lost_gpu_ms\":160000}\n\
     {\"t_ms\":90000,\"event\":\"requeued\",\"workload\":\"a-1\"}\n{\"t_ms\":95000,\"event\":\"started\",\"workload\":\"a-1\",\"attempt\":2}\n\
     {\"t_ms\":990000,\"event\":\"ended\",\"workload\":\"a-1\",\"attempt\":2,\"outcome\":\"completed\",\"lost_gpu_ms\":0}\n",
];

/// Slurm's, of which two copies are not twice the jobs.
const SLURM: &[&str] = &[
    "JobID|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|Elapsed|Timelimit|NNodes|NCPUS|ReqTRES|AllocTRES|Comment\n\
     1|ann|nlp|gpu|high|COMPLETED|2026-10-01T00:00:00|2026-10-01T00:00:00|2026-10-01T00:01:00|2026-10-01T01:01:00|01:00:00|\
     1-00:00:00|2|32||billing=16,cpu=32,gres/gpu:a100=16,gres/gpu=16,mem=100G,node=2|a|b\n1.batch|||||COMPLETED|||||||1|||cpu=16|\n\
     2_[3-5%2]|bob|bio|cpu|low|PENDING|2026-10-01T00:00:00|Unknown|Unknown|Unknown|00:00:00|UNLIMITED|1|8||cpu=8|\n\
     3+0|bob|bio|cpu|low|CANCELLED by 77|2026-10-01T00:00:00|2026-10-01T00:00:00|2026-10-01T00:01:00|Unknown|00:30:00|Partition_Limit|1|8||cpu=8,mem=2252800K|\n",
    "{\"jobs\": [{\"job_id\": 7, \"user\": \"ann\", \"account\": \"nlp\", \"partition\": \"gpu\", \"state\": {\"current\": [\"COMPLETED\"]},\n\
     \"time\": {\"submission\": 1790000000, \"eligible\": 1790000000, \"start\": 1790000060, \"end\": 1790003660, \"elapsed\": 3600,\n\
     \"limit\": {\"set\": true, \"infinite\": false, \"number\": 60}}, \"allocation_nodes\": 2, \"tres\": {\"allocated\": [{\"type\": \"gres\",\n\
     \"name\": \"gpu\", \"count\": 16}, {\"type\": \"cpu\", \"count\": 32}]}}]}\n",
];

/// Pieces that break readers: bounds, signs, quotes, no text at all, and the separators of all forms.
const PIECES: &[&str] = &[
    "",
    "-",
    "-1",
    "0",
    "1",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "1e308",
    "nan",
    "\"",
    "\"\"",
    ",",
    ";",
    "|",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "\0",
    "\u{feff}",
    "☃",
    "0.9999",
    "3153600000",
    "2017-02-30 25:61:61",
    "99999999999999999999",
    "1000000",
    "1.",
    ".",
    "--1",
    "resume",
    "Running",
    ":",
];

/// Bytes that no text has.
const BYTES: &[u8] = &[0x00, 0xff, 0xfe, 0x80, 0x1f, 0x8b, 0x28, b'"', b'\n', b'\r', b',', b';', b' ', b'-', b'9'];

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = mix(self.0 + 1);
        (self.0 % bound.max(1) as u64) as usize
    }

    fn one_of<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

/// One change somewhere.
fn mutate(text: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.below(text.len());
    match dice.below(8) {
        0 => text.truncate(at),
        1 if !text.is_empty() => text[at] = BYTES[dice.below(BYTES.len())],
        2 if !text.is_empty() => text[at] ^= 1 << dice.below(8),
        3 => text.insert(at, BYTES[dice.below(BYTES.len())]),
        4 => {
            let piece = dice.one_of(PIECES).as_bytes();
            text.splice(at..at, piece.iter().copied());
        }
        5 => {
            // A part of the file again: fields, lines, headers in its midst.
            let end = (at + dice.below(100)).min(text.len());
            let part = text[at..end].to_vec();
            let to = dice.below(text.len());
            text.splice(to..to, part);
        }
        6 => {
            let end = (at + dice.below(20)).min(text.len());
            text.drain(at..end);
        }
        _ => field(text, dice),
    }
}

/// A whole field becomes something else.
fn field(text: &mut Vec<u8>, dice: &mut Dice) {
    let separator = |byte: &u8| b", \n|".contains(byte);
    let at = dice.below(text.len());
    let begin = text[..at].iter().rposition(separator).map_or(0, |found| found + 1);
    let end = text[at..].iter().position(separator).map_or(text.len(), |found| at + found);
    if begin <= end {
        let piece = dice.one_of(PIECES).as_bytes();
        text.splice(begin..end, piece.iter().copied());
    }
}

fn compressed(file: &[u8], how: usize) -> Vec<u8> {
    match how {
        0 => {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gz.write_all(file).and_then(|()| gz.finish()).expect("memory takes it")
        }
        _ => zstd::encode_all(file, 1).expect("memory takes it"),
    }
}

#[test]
fn no_mutation_makes_the_reader_panic() {
    let rounds: u64 = std::env::var("MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(3000);
    for seed in 0..rounds {
        let mut dice = Dice(mix(seed));
        let all = [FILES, SLURM].concat();
        let mut file = all[dice.below(all.len())].as_bytes().to_vec();
        let packed = dice.below(10);
        if packed < 2 {
            file = compressed(&file, packed);
        }
        for _ in 0..=dice.below(6) {
            mutate(&mut file, &mut dice);
        }
        if packed == 2 {
            file = compressed(&file, dice.below(2));
        }
        if catch_unwind(AssertUnwindSafe(|| look(&file))).is_err() {
            panic!("seed {seed} breaks the reader with {:?}", String::from_utf8_lossy(&file));
        }
    }
}

#[test]
fn the_files_themselves_are_read_whole() {
    for file in SLURM {
        let trace = Trace::read(file.as_bytes(), Reading::default()).expect("a known form");
        assert_eq!((trace.rows.len(), trace.bad_rows), (1, 0), "{file}{}", trace.notes());
        look(file.as_bytes());
    }
    // Found by a mutation: eighty years between two jobs, in a line that became too wide.
    look(b"timestamp,duration,num_gpus,gpu_time,cluster\n2097-10-09 07:01:55,66.0,1,66.0,a\n2017-10-09 06:13:03,2951.0,12,2951.0,b\n");
    for (file, rows) in FILES.iter().zip([2, 2, 2, 3, 3, 1]) {
        let trace = Trace::read(file.as_bytes(), Reading::default()).expect("a known form");
        assert_eq!((trace.rows.len(), trace.bad_rows), (rows, 0), "{file}{}", trace.notes());
        look(file.as_bytes());
        for how in 0..2 {
            let packed = compressed(file.as_bytes(), how);
            let two = [packed.clone(), packed].concat();
            assert!(Trace::read(two.as_slice(), Reading::default()).expect("two members").rows.len() >= 2 * rows);
        }
    }
}

#[test]
fn a_file_that_grows_when_unpacked_takes_no_more_memory_than_a_line() {
    // 64 MiB of one character, in some tens of KiB: a header that is none, and a line that is too long.
    let long = vec![b'x'; 64 << 20];
    assert!(Trace::read(compressed(&long, 1).as_slice(), Reading::default()).is_err());
    let behind = [b"submit_s,work_s,gpus\n0,10,1\n".to_vec(), long, b"\n5,10,1\n".to_vec()].concat();
    let trace = Trace::read(compressed(&behind, 0).as_slice(), Reading::default()).expect("ours");
    assert_eq!((trace.rows.len(), trace.bad_rows), (2, 1));
    assert!(trace.bad_examples[0].reason.len() < 200);
}
