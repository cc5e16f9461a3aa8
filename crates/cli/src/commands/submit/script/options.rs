//! The options of `sbatch` that mean something here, one by one.

use super::asked::{Asked, Gpus};
use stipend_core::quantity::Span;
use stipend_server::wire::length::Length;
use stipend_server::wire::workload::OnPreempt;

/// Options that are understood, by their long names, with the short one and whether a value follows.
const KNOWN: [(&str, char, bool); 28] = [
    ("account", 'A', true),
    ("array", 'a', true),
    ("chdir", 'D', true),
    ("constraint", 'C', true),
    ("cpus-per-gpu", ' ', true),
    ("cpus-per-task", 'c', true),
    ("dependency", 'd', true),
    ("export", ' ', true),
    ("gpus", 'G', true),
    ("gpus-per-node", ' ', true),
    ("gpus-per-task", ' ', true),
    ("gres", ' ', true),
    ("job-name", 'J', true),
    ("mem", ' ', true),
    ("mem-per-cpu", ' ', true),
    ("mem-per-gpu", ' ', true),
    ("no-requeue", ' ', false),
    ("nodes", 'N', true),
    ("ntasks", 'n', true),
    ("ntasks-per-node", ' ', true),
    ("parsable", ' ', false),
    ("partition", 'p', true),
    ("quiet", 'Q', false),
    ("requeue", ' ', false),
    ("switches", ' ', true),
    ("tasks-per-node", ' ', true),
    ("time", 't', true),
    ("verbose", 'v', false),
];

/// Options that are not understood and take no value; all others that are not understood may take one.
const FLAGS: [&str; 9] = ["exclusive", "hold", "overcommit", "contiguous", "spread-job", "use-min-nodes", "wait", "H", "O"];

/// Reads the words of one line.
pub(super) fn read(words: &[String], asked: &mut Asked) -> Result<(), String> {
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        let (name, mut value) = split(word)?;
        let known = KNOWN.iter().find(|(long, short, _)| *long == name || (*short != ' ' && name.len() == 1 && name.starts_with(*short)));
        let takes = known.map_or(!FLAGS.contains(&name), |(.., takes)| *takes);
        let next = if value.is_none() && takes { words.next_if(|next| known.is_some() || !next.starts_with('-')) } else { None };
        value = value.or(next);
        let Some((long, ..)) = known else {
            asked.not_understood(next.map_or(word.to_owned(), |next| format!("{word} {next}")));
            continue;
        };
        let value = if takes { value.ok_or_else(|| format!("--{long} has no value"))? } else { "" };
        take(long, value, asked)?;
    }
    Ok(())
}

/// An option's name without its dashes, and the value if it is in the same word.
fn split(word: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(long) = word.strip_prefix("--") {
        return Ok(long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value))));
    }
    let short = word.strip_prefix('-').filter(|short| !short.is_empty());
    let short = short.ok_or_else(|| format!("`{word}` is no option"))?;
    let end = short.chars().next().map_or(0, char::len_utf8);
    let value = short[end..].strip_prefix('=').unwrap_or(&short[end..]);
    Ok((&short[..end], Some(value).filter(|value| !value.is_empty())))
}

fn take(long: &str, value: &str, asked: &mut Asked) -> Result<(), String> {
    let number = || value.parse::<u32>().map_err(|_| format!("--{long}: `{value}` is not a number"));
    match long {
        "account" => asked.submission.budget = value.into(),
        "array" => asked.submission.array = Some(array(value).ok_or_else(|| format!("--array: `{value}` is no list of indices"))?),
        "chdir" => asked.submission.workdir = Some(value.into()),
        "constraint" => features(value, asked),
        "cpus-per-gpu" => asked.cpus_per_gpu = Some(number()?),
        "cpus-per-task" => asked.cpus_per_task = Some(number()?),
        "dependency" => dependency(value, asked)?,
        "export" => export(value, asked),
        "gpus" => asked.gpus = Some(Gpus::Total(counted(long, value, asked)?)),
        "gpus-per-node" => asked.gpus = Some(Gpus::PerMember(counted(long, value, asked)?)),
        "gpus-per-task" => asked.gpus = Some(Gpus::PerTask(counted(long, value, asked)?)),
        "gres" => gres(value, asked)?,
        "job-name" => asked.submission.name = Some(value.into()),
        "mem" => asked.memory = Some(mebibytes(long, value)?),
        "mem-per-cpu" => asked.memory_per_cpu = Some(mebibytes(long, value)?),
        "mem-per-gpu" => asked.memory_per_gpu = Some(mebibytes(long, value)?),
        "no-requeue" => asked.submission.on_preempt = OnPreempt::End,
        "requeue" => asked.submission.on_preempt = OnPreempt::Restart,
        "nodes" => asked.members = Some(nodes(value, asked)?),
        "ntasks" => asked.tasks = Some(number()?),
        "ntasks-per-node" | "tasks-per-node" => asked.tasks_per_member = Some(number()?),
        "partition" => asked.submission.pools = value.split(',').map(str::to_owned).collect(),
        "switches" => asked.submission.same_block = value.split('@').next() == Some("1"),
        "time" => asked.submission.time_limit = time(value)?,
        // How much sbatch itself says.
        _ => {}
    }
    Ok(())
}

/// Features that must all be there; Slurm's other ways to combine them have no counterpart.
fn features(value: &str, asked: &mut Asked) {
    if value.contains(['|', '[', '(', '*']) {
        asked.not_understood(format!("--constraint={value}"));
    } else {
        asked.submission.features = value.split(['&', ',']).map(str::to_owned).collect();
    }
}

/// `4` or `a100:4`; the kind of GPU is what a pool is.
fn counted(long: &str, value: &str, asked: &mut Asked) -> Result<u32, String> {
    let (kind, count) = value.rsplit_once(':').map_or((None, value), |(kind, count)| (Some(kind), count));
    asked.gpu_kind = kind.map(str::to_owned).or(asked.gpu_kind.take());
    count.parse().map_err(|_| format!("--{long}: `{value}` is not a number of GPUs such as 4 or a100:4"))
}

fn gres(value: &str, asked: &mut Asked) -> Result<(), String> {
    for part in value.split(',') {
        match part.strip_prefix("gpu").map(|rest| rest.strip_prefix(':').unwrap_or(rest)) {
            // `gpu` alone is one of them, and so is `gpu:a100`.
            Some("") => asked.gpus = Some(Gpus::PerMember(1)),
            Some(kind) if !kind.ends_with(|c: char| c.is_ascii_digit()) || (!kind.contains(':') && kind.parse::<u32>().is_err()) => {
                asked.gpus = Some(Gpus::PerMember(counted("gres", &format!("{kind}:1"), asked)?));
            }
            Some(count) => asked.gpus = Some(Gpus::PerMember(counted("gres", count, asked)?)),
            None => asked.not_understood(format!("--gres={part}")),
        }
    }
    Ok(())
}

/// `2`, or the least of `2-4`.
fn nodes(value: &str, asked: &mut Asked) -> Result<u32, String> {
    let (least, most) = value.split_once('-').map_or((value, None), |(least, most)| (least, Some(most)));
    if most.is_some_and(|most| most != least) {
        asked.note(format!("--nodes={value}: a gang has one size here, {least} members"));
    }
    least.parse().map_err(|_| format!("--nodes: `{value}` is not a number of nodes"))
}

/// `afterok:12:13`; no other dependency has a counterpart.
fn dependency(value: &str, asked: &mut Asked) -> Result<(), String> {
    for part in value.split(',') {
        match part.strip_prefix("afterok:") {
            Some(ids) => {
                let number = |id: &str| id.strip_prefix('w').unwrap_or(id).parse::<u32>();
                let ids = ids.split(':').map(|id| number(id).map_err(|_| format!("--dependency: `{id}` is no workload's number")));
                asked.submission.after.extend(ids.collect::<Result<Vec<u32>, String>>()?);
            }
            None => asked.not_understood(format!("--dependency={part}")),
        }
    }
    Ok(())
}

/// Variables that are set; which of the submitter's are taken along is not to be chosen.
fn export(value: &str, asked: &mut Asked) {
    for part in value.split(',') {
        match part.split_once('=') {
            Some((name, value)) => {
                asked.submission.env.insert(name.into(), value.into());
            }
            None if part == "NONE" => {}
            None => asked.not_understood(format!("--export={part}")),
        }
    }
}

/// Slurm's `1-9:2%3` written out as `1,3,5,7,9%3`.
fn array(value: &str) -> Option<String> {
    if !value.contains(':') {
        return Some(value.into());
    }
    let (indices, at_once) = value.split_once('%').map_or((value, None), |(indices, at_once)| (indices, Some(at_once)));
    let mut out = Vec::new();
    for part in indices.split(',') {
        let Some((range, step)) = part.split_once(':') else {
            out.push(part.to_owned());
            continue;
        };
        let (from, to) = range.split_once('-')?;
        let (from, to, step) = (from.parse::<u32>().ok()?, to.parse::<u32>().ok()?, step.parse::<usize>().ok().filter(|step| 0 < *step)?);
        // As many as an array may have at most in Slurm.
        out.extend((from..=to).step_by(step).take(4_000_001).map(|index| index.to_string()));
    }
    Some(out.join(",") + &at_once.map_or(String::new(), |at_once| format!("%{at_once}")))
}

/// `64G`, `64000` (MiB); 0 is all there is.
fn mebibytes(long: &str, value: &str) -> Result<u64, String> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = digits.parse::<u64>().map_err(|_| format!("--{long}: `{value}` is not an amount such as 64G or 64000M"))?;
    match value[digits.len()..].to_ascii_uppercase().trim_end_matches('B') {
        "K" => Ok(number.div_ceil(1024)),
        "" | "M" => Ok(number),
        "G" => Ok(number.saturating_mul(1024)),
        "T" => Ok(number.saturating_mul(1024 * 1024)),
        unit => Err(format!("--{long}: `{unit}` is not a unit; it is K, M, G or T")),
    }
}

/// `90` (minutes), `90:00`, `1:30:00`, `2-12`, `2-12:30`, `2-12:30:00`; none where it is without limit.
fn time(value: &str) -> Result<Option<Length>, String> {
    if matches!(value.to_ascii_uppercase().as_str(), "UNLIMITED" | "INFINITE" | "0") {
        return Ok(None);
    }
    let wrong = || format!("--time: `{value}` is not a time such as 90 (minutes), 1:30:00 or 2-12:00:00");
    let (days, rest) = match value.split_once('-') {
        Some((days, rest)) => (Some(days.parse::<i64>().map_err(|_| wrong())?), rest),
        None => (None, value),
    };
    let parts = rest.split(':').map(str::parse::<i64>).collect::<Result<Vec<i64>, _>>().map_err(|_| wrong())?;
    let seconds = match (days, parts.as_slice()) {
        (Some(days), [hours]) => days * 86_400 + hours * 3600,
        (Some(days), [hours, minutes]) => days * 86_400 + hours * 3600 + minutes * 60,
        (days, [hours, minutes, seconds]) => days.unwrap_or(0) * 86_400 + hours * 3600 + minutes * 60 + seconds,
        (None, [minutes]) => minutes * 60,
        (None, [minutes, seconds]) => minutes * 60 + seconds,
        _ => return Err(wrong()),
    };
    let in_range = (1..=20 * 365 * 86_400).contains(&seconds);
    in_range.then_some(Some(Length(Span::seconds(seconds)))).ok_or_else(wrong)
}
