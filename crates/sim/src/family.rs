//! Families of workloads: attempts at the same thing by the same user at the same size, whatever is different in their names.
//!
//! A family is what history is kept of: what failed nine times in ten will hardly do better the tenth time because its seed is another one.
//! So a name loses what varies between siblings ([`stem`]), and sizes are compared by powers of two ([`size_class`]).
//! `docs/reference/traces.md` says the rule for users.

use std::iter::Peekable;
use std::str::Chars;
use stipend_core::id::FamilyId;

/// Where nothing is left of a name: numbers alone.
pub const ONLY_NUMBERS: &str = "#";

/// Words in front of what really runs.
const LAUNCHERS: [&str; 27] = [
    "accelerate",
    "apptainer",
    "bash",
    "conda",
    "deepspeed",
    "env",
    "exec",
    "julia",
    "launch",
    "mpiexec",
    "mpirun",
    "nice",
    "nohup",
    "numactl",
    "poetry",
    "python",
    "run",
    "salloc",
    "sbatch",
    "sh",
    "singularity",
    "srun",
    "sudo",
    "time",
    "torchrun",
    "uv",
    "zsh",
];

/// What scripts are called.
const SCRIPTS: [&str; 10] = [".py", ".sh", ".bash", ".sbatch", ".slurm", ".job", ".jl", ".r", ".pl", ".m"];

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// A word of at least so many hexadecimal digits, two of them decimal, is a hash.
const HASH_MIN: usize = 6;

/// A word of more runs of letters and digits than this, none of them long, is an identifier that a machine made.
const RUNS_MAX: usize = 3;

/// A word of a language has more letters than this.
const SHORT: usize = 3;

/// Attempts at the same thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Family {
    /// Whose they are.
    pub user: String,
    /// What their names have in common; empty where they have none.
    pub stem: String,
    /// Their size class, GPUs: a power of two, or 0.
    pub gpus: u64,
}

/// The family of a workload of this user with this name (or command) and so many GPUs in all.
pub fn family(user: &str, name: &str, gpus: u64) -> Family {
    Family { user: user.into(), stem: stem(name), gpus: size_class(gpus) }
}

impl Family {
    /// The same as the core's identity.
    pub fn id(&self) -> FamilyId {
        FamilyId(self.number())
    }

    /// Its number, the same in every run and on every machine: FNV-1a with 64 bits over the bytes of the user, 0xff, those of the stem, 0xff
    /// (which no UTF-8 contains), and the size class as eight bytes, the lowest first.
    pub fn number(&self) -> u64 {
        let size = self.gpus.to_le_bytes();
        let parts: [&[u8]; 5] = [self.user.as_bytes(), &[0xff], self.stem.as_bytes(), &[0xff], &size];
        let bytes = parts.into_iter().flatten();
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }
}

/// The least power of two that is at least this; 0 of 0.
pub fn size_class(gpus: u64) -> u64 {
    if gpus == 0 { 0 } else { gpus.checked_next_power_of_two().unwrap_or(1 << 63) }
}

/// What a name has in common with those of its siblings, in lower case, its words joined by `_`.
///
/// - Of a command line only what runs counts, and the word behind it: no launcher, no folder, no option and no value of one.
/// - Words are parted at whatever is neither letter nor digit. Digits go, with the exponents of numbers; `lr1e-3` is `lr`.
/// - Hashes, UUIDs and identifiers made by machines go whole; so do months beside a number, and single letters in one word with one (`v2`, `7b`).
/// - Of a name that has nothing else [`ONLY_NUMBERS`] is left, and nothing of an empty one.
pub fn stem(name: &str) -> String {
    let name = name.trim();
    let command = if name.contains(char::is_whitespace) { what_runs(name) } else { name.to_owned() };
    // Folders say where, not what; a name that only ends in a stroke keeps it.
    let last = command.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let words: Vec<&str> = last.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_number = |at: Option<usize>| at.and_then(|at| words.get(at)).is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let mut kept: Vec<String> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if let Some(length) = uuid(&words[at..]) {
            at += length;
            continue;
        }
        let beside_number = is_number(at.checked_sub(1)) || is_number(Some(at + 1));
        kept.extend(letters(words[at], beside_number));
        at += 1;
    }
    match kept.is_empty() {
        true if name.is_empty() => String::new(),
        true => ONLY_NUMBERS.into(),
        false => kept.join("_"),
    }
}

/// What runs of a command line: its first script, else its first word that is neither a launcher nor an option nor, if there is a choice, an
/// option's value; and the word behind it, which often says what it is to do.
fn what_runs(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches(['"', '\'', '(', ')', ';', '&'])).collect();
    let is_option = |word: &str| word.starts_with('-') || word.contains('=') || word.is_empty();
    let base = |at: usize| words[at].rsplit('/').next().unwrap_or_default().to_lowercase();
    let is_script = |at: &usize| !is_option(words[*at]) && SCRIPTS.iter().any(|end| base(*at).ends_with(end));
    let is_launcher = |word: &str| LAUNCHERS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'));
    let is_plain = |at: &usize| !is_option(words[*at]) && !is_launcher(&base(*at));
    let is_value = |at: usize| at > 0 && words[at - 1].starts_with('-') && !words[at - 1].contains('=') && words[at - 1] != "-m";
    let mut places = 0..words.len();
    let found = places.clone().find(is_script);
    let found = found.or_else(|| places.clone().find(|at| is_plain(at) && !is_value(*at))).or_else(|| places.find(is_plain));
    let Some(at) = found else { return line.replace(char::is_whitespace, "_") };
    match words.get(at + 1).filter(|word| !is_option(word) && word.starts_with(char::is_alphabetic)) {
        Some(_) => format!("{}_{}", base(at), base(at + 1)),
        None => base(at),
    }
}

/// How many words a UUID at their begin takes: five of 8, 4, 4, 4 and 12 hexadecimal digits.
fn uuid(words: &[&str]) -> Option<usize> {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let is_part = |(word, length): (&&str, usize)| word.len() == length && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    (words.len() >= LENGTHS.len() && words.iter().zip(LENGTHS).all(is_part)).then_some(LENGTHS.len())
}

/// The runs of letters of one word, in lower case; none of one that only tells siblings apart.
fn letters(word: &str, beside_number: bool) -> Vec<String> {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_hash = word.len() >= HASH_MIN && digits >= 2 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash {
        return Vec::new();
    }
    let (mut runs, mut parts) = (Vec::new(), 0);
    let mut rest = word.chars().peekable();
    while let Some(&next) = rest.peek() {
        parts += 1;
        if next.is_ascii_digit() {
            number(&mut rest);
        } else {
            runs.push(run(&mut rest));
        }
    }
    if parts > RUNS_MAX && runs.iter().all(|run| run.chars().count() <= SHORT) {
        return Vec::new();
    }
    let varies = |text: &String| {
        let is_letter = digits > 0 && text.chars().count() == 1;
        is_letter || ((digits > 0 || beside_number) && MONTHS.contains(&text.as_str()))
    };
    runs.retain(|text| !varies(text));
    runs
}

/// Passes over a number with its exponent: `1e` before a sign that parted the words, or `1e4`.
fn number(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(char::is_ascii_digit).is_some() {}
    let mut ahead = rest.clone();
    if ahead.next_if(|c| c.eq_ignore_ascii_case(&'e')).is_some() && ahead.peek().is_none_or(char::is_ascii_digit) {
        rest.next();
        while rest.next_if(char::is_ascii_digit).is_some() {}
    }
}

fn run(rest: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(letter) = rest.next_if(|c| !c.is_ascii_digit()) {
        text.extend(letter.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &str, names: &[&str]) {
        for name in names {
            assert_eq!(stem(name), expected, "{name}");
        }
    }

    #[test]
    fn what_varies_between_siblings_goes() {
        check("train_lr_seed", &["train_lr3_seed17", "train_lr5_seed2", "train-lr1e-3-seed9", "Train.lr0.01.seed1", "train_lr1e4_seed3"]);
        check(
            "resnet",
            &["resnet50", "resnet-101", "resnet_152[7]", "resnet-v2", "resnet_2024-11-03", "resnet-03-nov-2024", "resnet03Nov2024"],
        );
        check("eval", &["eval-3f9a2c1", "eval_0b5e8f0c-9d3a-4c41-8a6f-0123456789ab", "eval-x7Gk2p", "eval_17h30m05s"]);
        check("llama_sft", &["llama3-7b-sft", "llama-13b_sft", "LLaMA2_sft"]);
        check("g", &["g-1", "G_17"]);
        check("märz_lauf", &["März-Lauf-7"]);
        check("march_decade", &["march-decade"]);
        check(ONLY_NUMBERS, &["12345", "2024-11-03", "3f9a2c1", "_7_"]);
        check("", &["", "  "]);
    }

    #[test]
    fn of_a_command_what_runs_counts() {
        check(
            "train_py",
            &[
                "python train.py --lr 3 --seed 17",
                "sbatch -p gpu --gres=gpu:4 /data/ann/train.py --out run_9",
                "CUDA_VISIBLE_DEVICES=0 python3.11 ./train.py 17",
                "bash -c \"python train.py --epochs 3\"",
                "accelerate launch --num_processes 8 train.py",
            ],
        );
        check("main_py_eval", &["python main.py eval --n 3", "srun python main.py eval"]);
        check("pkg_train", &["python -m pkg.train --lr 1e-4"]);
        check("a_out", &["srun -p gpu ./a.out -n 3", "mpirun -np 64 /opt/bin/a.out"]);
        check("bash", &["bash", "/bin/bash"]);
        check("python_seed", &["python --seed=3"]);
    }

    #[test]
    fn sizes_are_powers_of_two() {
        let classes = [0, 1, 2, 3, 4, 5, 8, 9, 24, u64::MAX].map(size_class);
        assert_eq!(classes, [0, 1, 2, 4, 4, 8, 8, 16, 32, 1 << 63]);
    }

    /// Written down, because the numbers are kept: a journal or a store of another version must mean the same family.
    #[test]
    fn numbers_never_change() {
        assert_eq!(family("ann", "train_lr3_seed17", 8).number(), family("ann", "train_lr5_seed2", 5).number());
        assert_eq!(family("ann", "train_lr3_seed17", 8).number(), 8_065_736_086_724_268_369);
        assert_ne!(family("an", "ntrain", 8).number(), family("ann", "train", 8).number());
        assert_ne!(family("ann", "train", 8).number(), family("ann", "train", 16).number());
    }
}
