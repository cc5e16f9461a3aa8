//! A batch script: what its `#SBATCH` lines mean here, and `#STIPEND` lines for what Slurm has no word for.

mod asked;
mod options;

use super::request::{Read, Request};
use crate::failure::Failure;
use asked::Asked;
use clap::Parser;
use std::collections::BTreeSet;
use std::path::Path;

/// A longer script does not fit into one argument of a program (Linux: 128 KiB).
const INLINE_MAX: usize = 120 << 10;

/// A `#STIPEND` line: flags as `stipend submit` has them.
#[derive(Debug, Parser)]
#[command(name = "#STIPEND", disable_help_flag = true)]
struct OwnLine {
    #[command(flatten)]
    request: Request,
}

/// Reads a script; it runs as it is now, whatever becomes of its file.
pub(super) fn read(path: &Path, text: &str, arguments: Vec<String>) -> Result<Read, Failure> {
    let file = path.display();
    let mut asked = Asked::default();
    let mut own = Vec::new();
    for (number, line) in text.lines().enumerate().take_while(|(_, line)| line.trim().is_empty() || line.starts_with('#')) {
        let Some((mark, rest)) = line.split_once(char::is_whitespace) else { continue };
        let wrong = |message: String| Failure::new(format!("{file}:{}: {}: {message}", number + 1, line.trim()));
        let words = || shlex::split(rest).ok_or_else(|| wrong("a quote is not closed".into()));
        match mark {
            "#SBATCH" => options::read(&words()?, &mut asked).map_err(wrong)?,
            "#STIPEND" => {
                let words = std::iter::once("#STIPEND".to_owned()).chain(words()?);
                let parsed = OwnLine::try_parse_from(words).map_err(|error| wrong(first_line(&error)))?;
                own.push(parsed.request);
            }
            _ => {}
        }
    }
    let kind = asked.gpu_kind.take();
    let (mut submission, mut notes) = asked.submission().map_err(|message| Failure::new(format!("{file}: {message}")))?;
    own.into_iter().try_for_each(|request| request.lay_over(&mut submission))?;
    if let Some(kind) = kind.filter(|_| submission.pools.is_empty()) {
        notes.push(format!("a kind of GPU is a pool of its own here: name the one of {kind} with --pool"));
    }
    submission.command = command(path, text, arguments)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    submission.name = submission.name.or(name);
    notes.extend(missing(text));
    let notes = notes.into_iter().map(|note| format!("{file}: {note}")).collect();
    Ok(Read { submission, notes })
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The interpreter that the first line names, with the script's text; a script for something else, or one that is too long, by its path.
fn command(path: &Path, text: &str, arguments: Vec<String>) -> Result<Vec<String>, Failure> {
    let first = text.lines().next().and_then(|line| line.strip_prefix("#!")).unwrap_or("/bin/sh").trim();
    let mut command: Vec<String> = first.split_whitespace().map(str::to_owned).collect();
    let interpreter = command.last().map_or("", String::as_str);
    let takes_text = ["sh", "bash", "dash", "ksh", "zsh"].iter().any(|shell| Path::new(interpreter).file_name() == Some(shell.as_ref()));
    if takes_text && text.len() <= INLINE_MAX {
        // The shell's $0 is the path, as if it were run from there.
        command.extend(["-c".into(), text.to_owned(), path.display().to_string()]);
    } else {
        let absolute = std::path::absolute(path)?;
        let utf8 =
            absolute.into_os_string().into_string().map_err(|_| Failure::new(format!("{}: its name is not UTF-8", path.display())))?;
        command.push(utf8);
    }
    command.extend(arguments);
    Ok(command)
}

/// What the script uses of Slurm while it runs.
fn missing(text: &str) -> Option<String> {
    let body = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let words = body.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let used: BTreeSet<&str> = words.filter(|word| word.starts_with("SLURM_") || matches!(*word, "srun" | "sbcast" | "scontrol")).collect();
    let used: Vec<&str> = used.into_iter().collect();
    (!used.is_empty()).then(|| {
        format!(
            "it uses {}, which are not there when Stipend runs it: each member runs the whole script, with STIPEND_ variables instead",
            used.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
