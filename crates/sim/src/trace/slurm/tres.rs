//! GPUs in Slurm's lists of resources.

use super::value::quantity;

/// What one list names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resources<'a> {
    /// GPUs.
    pub(super) gpus: u32,
    /// Their type, where the list names one; of several the one with the most GPUs.
    pub(super) kind: Option<&'a [u8]>,
    /// CPUs; 0 if it names none.
    pub(super) cpus: u32,
    /// Memory in MiB; 0 if it names none.
    pub(super) memory: u32,
    /// Nodes; 0 if it names none.
    pub(super) nodes: u32,
}

impl Resources<'_> {
    /// As many on each of so many nodes: GRES count the GPUs of one node, TRES those of the whole job.
    pub(super) fn on(self, nodes: u32) -> Self {
        Resources { gpus: self.gpus.saturating_mul(nodes.max(1)), ..self }
    }
}

/// Adds up the entries of one list: GPUs without a type are the sum of those with one, so the two are never added together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally<'a> {
    untyped: u32,
    typed: u32,
    most: u32,
    rest: Resources<'a>,
}

impl<'a> Tally<'a> {
    /// So many GPUs of a type, or of any.
    pub(super) fn gpus(&mut self, kind: Option<&'a [u8]>, count: u32) {
        match kind {
            None => self.untyped = self.untyped.saturating_add(count),
            Some(_) => {
                self.typed = self.typed.saturating_add(count);
                if count > self.most {
                    (self.most, self.rest.kind) = (count, kind);
                }
            }
        }
    }

    /// So many CPUs.
    pub(super) fn cpus(&mut self, count: u32) {
        self.rest.cpus = count;
    }

    /// So much memory in MiB.
    pub(super) fn memory(&mut self, mebibytes: u32) {
        self.rest.memory = mebibytes;
    }

    /// So many nodes.
    pub(super) fn nodes(&mut self, count: u32) {
        self.rest.nodes = count;
    }

    /// What the list names.
    pub(super) fn resources(&self) -> Resources<'a> {
        Resources { gpus: if self.untyped > 0 { self.untyped } else { self.typed }, ..self.rest }
    }
}

/// Reads `cpu=8,gres/gpu=4,gres/gpu:a100=4` (AllocTRES), `1=8,1001=4` (the database), `gpu:a100:4(S:0-3),nsight:no_consume:1` (GRES) or
/// `gres/gpu:4` (what a job asked for). `gres/gpumem` and `gres/gpuutil` are no GPUs. `Err` is an entry that should count GPUs and does not.
pub(super) fn resources(text: &[u8]) -> Result<Resources<'_>, ()> {
    let mut tally = Tally::default();
    let mut rest = text;
    while !rest.is_empty() {
        let end = entry_end(rest);
        entry(rest[..end].trim_ascii(), &mut tally)?;
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    Ok(tally.resources())
}

/// Where an entry ends: at a comma that stands in no brackets (`gpu:2(IDX:0,3)`).
fn entry_end(text: &[u8]) -> usize {
    let mut from = 0;
    while let Some(found) = memchr::memchr2(b',', b'(', &text[from..]) {
        let at = from + found;
        if text[at] == b',' {
            return at;
        }
        match memchr::memchr(b')', &text[at..]) {
            Some(close) => from = at + close,
            None => break,
        }
    }
    text.len()
}

fn entry<'a>(text: &'a [u8], tally: &mut Tally<'a>) -> Result<(), ()> {
    match text {
        // The database numbers its kinds; gres/gpu is 1001 wherever GPUs were the first of its own kinds that was configured.
        [b'1', b'=', number @ ..] | [b'c', b'p', b'u', b'=', number @ ..] => tally.cpus(quantity(number).ok().flatten().unwrap_or(0)),
        [b'2', b'=', number @ ..] | [b'm', b'e', b'm', b'=', number @ ..] => tally.memory(mebibytes(number)),
        [b'4', b'=', number @ ..] | [b'n', b'o', b'd', b'e', b'=', number @ ..] => {
            tally.nodes(quantity(number).ok().flatten().unwrap_or(0))
        }
        [b'1', b'0', b'0', b'1', b'=', number @ ..] => tally.gpus(None, quantity(number)?.unwrap_or(0)),
        _ => return gpu_entry(text, tally),
    }
    Ok(())
}

/// An entry that may count GPUs.
fn gpu_entry<'a>(text: &'a [u8], tally: &mut Tally<'a>) -> Result<(), ()> {
    let name = text.strip_prefix(b"gres/").or(text.strip_prefix(b"gres:")).unwrap_or(text);
    let Some(rest) = name.strip_prefix(b"gpu") else { return Ok(()) };
    let rest = &rest[..memchr::memchr(b'(', rest).unwrap_or(rest.len())];
    match rest {
        // `gpu` alone asks for one.
        [] => tally.gpus(None, 1),
        [b'=', number @ ..] => tally.gpus(None, quantity(number)?.unwrap_or(0)),
        [b':', rest @ ..] => {
            let kind_end = memchr::memchr2(b':', b'=', rest);
            let (kind, number) = (&rest[..kind_end.unwrap_or(rest.len())], kind_end.map(|end| &rest[end + 1..]));
            match number {
                None => match quantity(kind) {
                    Ok(number) => tally.gpus(None, number.unwrap_or(0)),
                    Err(()) => tally.gpus(Some(kind), 1),
                },
                Some(number) => {
                    let number = number.strip_prefix(b"no_consume:").unwrap_or(number);
                    tally.gpus(Some(kind), quantity(number)?.unwrap_or(0));
                }
            }
        }
        // Another name that begins like it: gpumem, gpuutil, gpu_shared.
        _ => {}
    }
    Ok(())
}

/// Memory as Slurm writes it, in MiB: `2252800K`, `64G`, `1280.50G`, `60T`, and a number alone, which counts MiB. What is no memory that a machine
/// could have (the database's marks in the upper bits) is none.
pub(super) fn mebibytes(text: &[u8]) -> u32 {
    let (digits, unit) = match text {
        [digits @ .., b'K'] => (digits, 1.0 / 1024.0),
        [digits @ .., b'G'] => (digits, 1024.0),
        [digits @ .., b'T'] => (digits, 1024.0 * 1024.0),
        [digits @ .., b'P'] => (digits, 1024.0 * 1024.0 * 1024.0),
        [digits @ .., b'M'] => (digits, 1.0),
        digits => (digits, 1.0),
    };
    let is_number = digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let number = std::str::from_utf8(digits).ok().filter(|_| is_number).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0) * unit;
    if number <= f64::from(u32::MAX) { number as u32 } else { 0 }
}
