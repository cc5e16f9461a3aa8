//! Lists of nodes: `scontrol show nodes`, `sinfo`, and the nodes of `slurmrestd`. They are no trace; what a scenario needs of them is said instead.

use super::layout::{header_delimiter, is_dashes, widths};
use super::lenient::{Number, Text};
use super::scan;
use super::split::{Fields, Splitter};
use super::tres::{mebibytes, resources};
use super::value::quantity;
use crate::harmless::harmless;
use crate::trace::input::Input;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A file of nodes has no more nodes than that, no longer names, and not so many kinds; what exceeds it is left aside.
const NODES_MAX: usize = 1_000_000;
const NAME_MAX: usize = 256;
const KINDS_MAX: usize = 1000;

/// The forms of such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Scontrol,
    Json,
    Sinfo,
    /// `sinfo` without a header: name, GRES, GRES in use, state.
    Bare,
}

/// Whether a file that begins so lists nodes.
pub(super) fn is_list(head: &[u8]) -> bool {
    form(head).is_some()
}

fn form(head: &[u8]) -> Option<Form> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let first = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let upper = first.to_ascii_uppercase();
    let has = |word: &[u8]| memchr::memmem::find(&upper, word).is_some();
    let mut words = first.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    match text {
        [b'{', rest @ ..] if rest.trim_ascii_start().starts_with(b"\"nodes\"") => Some(Form::Json),
        _ if text.starts_with(b"NodeName=") => Some(Form::Scontrol),
        _ if (has(b"NODELIST") || has(b"HOSTNAMES")) && has(b"GRES") && !has(b"JOBID") => Some(Form::Sinfo),
        _ if words.nth(1).is_some_and(|word| word.starts_with(b"gpu:")) && words.count() == 2 => Some(Form::Bare),
        _ => None,
    }
}

/// Nodes that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    gpus: u32,
    model: String,
    cpus: u32,
    memory_gib: u32,
}

/// How many nodes of each kind there are; each name counts once, in however many partitions it is.
#[derive(Default)]
struct Inventory {
    names: BTreeSet<Box<[u8]>>,
    /// All of the kind, and those that are down or drained.
    kinds: BTreeMap<Kind, (u64, u64)>,
}

impl Inventory {
    fn add(&mut self, name: &[u8], gres: &[u8], tres: &[u8], machine: (u32, u32), state: &str) {
        if name.is_empty()
            || name.len() > NAME_MAX
            || self.names.len() == NODES_MAX
            || self.kinds.len() == KINDS_MAX
            || !self.names.insert(name.into())
        {
            return;
        }
        let (gres, tres) = (resources(gres).unwrap_or_default(), resources(tres).unwrap_or_default());
        let gpus = if gres.gpus > 0 { gres.gpus } else { tres.gpus };
        let model = gres.kind.or(tres.kind).unwrap_or_default();
        let model = harmless(&String::from_utf8_lossy(&model[..model.len().min(64)]));
        let (cpus, memory) = (machine.0.max(tres.cpus), machine.1.max(tres.memory));
        let (all, away) = self.kinds.entry(Kind { gpus, model, cpus, memory_gib: memory / 1024 }).or_default();
        *all += 1;
        let state = state.to_ascii_lowercase();
        *away += u64::from(["down", "drain", "fail", "maint"].iter().any(|word| state.contains(word)));
    }

    /// What the file is, and the nodes with GPUs as a scenario has them.
    fn said(&self) -> String {
        let mut text = String::from("the file lists nodes of Slurm, not jobs");
        let with_gpus = self.kinds.iter().filter(|(kind, _)| kind.gpus > 0);
        let mut groups = with_gpus.clone().peekable();
        if groups.peek().is_none() {
            text.push_str("; none of them has a GPU");
        } else {
            text.push_str("; those with GPUs, as a scenario has them:");
        }
        for (kind, (all, away)) in groups {
            let away = if *away > 0 { format!(", {away} of them down or drained") } else { String::new() };
            let model = if kind.model.is_empty() { "GPUs of no named type" } else { &kind.model };
            let _ = write!(text, "\n  [[pool.groups]] # {model}{away}\n  nodes = {all}\n  gpus = {}", kind.gpus);
            for (field, value) in [("cpus", kind.cpus), ("memory_gib", kind.memory_gib)] {
                if value > 0 {
                    let _ = write!(text, "\n  {field} = {value}");
                }
            }
        }
        let without: u64 = self.kinds.iter().filter(|(kind, _)| kind.gpus == 0).map(|(_, (all, _))| all).sum();
        if without > 0 {
            let _ = write!(text, "\n  # {without} nodes without GPUs");
        }
        text
    }
}

/// Reads a list of nodes to its end and says what is in it.
pub(super) fn describe(input: &mut Input<'_>) -> Result<String, String> {
    let wrong = |error: std::io::Error| error.to_string();
    let mut found = Inventory::default();
    match form(input.head().map_err(wrong)?) {
        Some(Form::Json) => scan::objects(input, "nodes", |cut| json(cut.text, &mut found)).map_err(wrong)?,
        Some(Form::Sinfo) => sinfo(input, &mut found).map_err(wrong)?,
        _ => {
            let mut record = Vec::new();
            while let Some(line) = input.line().map_err(wrong)? {
                // Without -o a node goes on over lines that are indented.
                let begins = !line.text.starts_with(b" ") && !line.text.is_empty();
                if begins || record.len() > 1 << 20 {
                    node(&record, &mut found);
                    record.clear();
                }
                record.push(b' ');
                record.extend_from_slice(line.text);
            }
            node(&record, &mut found);
        }
    }
    Ok(found.said())
}

/// One node of `scontrol`, or a bare line of `sinfo`.
fn node(record: &[u8], found: &mut Inventory) {
    let words: Vec<&[u8]> = record.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let field = |name: &str| words.iter().find_map(|word| word.strip_prefix(name.as_bytes())).unwrap_or_default();
    if let [name, gres, _, state] = words.as_slice()
        && !name.starts_with(b"NodeName=")
    {
        return found.add(name, gres, b"", (0, 0), &String::from_utf8_lossy(state));
    }
    let count = |name| quantity(field(name)).ok().flatten().unwrap_or(0);
    let state = String::from_utf8_lossy(field("State=")).into_owned();
    found.add(field("NodeName="), field("Gres="), field("CfgTRES="), (count("CPUTot="), mebibytes(field("RealMemory="))), &state);
}

/// `sinfo` with a header.
fn sinfo(input: &mut Input<'_>, found: &mut Inventory) -> std::io::Result<()> {
    let mut layout: Option<(Splitter, Vec<Vec<u8>>)> = None;
    let mut fields = Fields::new();
    while let Some(line) = input.line()? {
        let text = line.text;
        let Some((splitter, names)) = &layout else {
            let delimiter = header_delimiter(text).map(<[u8]>::to_vec);
            let splitter = delimiter.map_or_else(|| Splitter::Widths(widths(text)), Splitter::Delimiter);
            splitter.split(text, &mut fields);
            let names = fields.iter().map(|&(from, to)| text[from..to].trim_ascii().to_ascii_uppercase()).collect();
            layout = Some((splitter, names));
            continue;
        };
        if is_dashes(text) {
            continue;
        }
        splitter.split(text, &mut fields);
        let field = |wanted: &[&str]| {
            let column = names.iter().position(|name| wanted.iter().any(|wanted| name == wanted.as_bytes()));
            column.and_then(|column| fields.get(column)).map_or(b"".as_slice(), |&(from, to)| text[from..to].trim_ascii())
        };
        let count = |wanted: &str| quantity(field(&[wanted])).ok().flatten().unwrap_or(0);
        let state = String::from_utf8_lossy(field(&["STATE"])).into_owned();
        found.add(field(&["HOSTNAMES", "NODEHOST", "NODELIST"]), field(&["GRES"]), b"", (count("CPUS"), count("MEMORY")), &state);
    }
    Ok(())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Node<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    gres: Text<'a>,
    #[serde(borrow)]
    tres: Text<'a>,
    #[serde(borrow)]
    state: Vec<Text<'a>>,
    cpus: Number,
    real_memory: Number,
}

fn json(text: &[u8], found: &mut Inventory) {
    let Ok(node) = serde_json::from_slice::<Node<'_>>(text) else { return };
    let small = |number: Number| number.0.and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    let state: Vec<&str> = node.state.iter().map(|state| state.0.as_ref()).collect();
    found.add(node.name.bytes(), node.gres.bytes(), node.tres.bytes(), (small(node.cpus), small(node.real_memory)), &state.join("+"));
}
