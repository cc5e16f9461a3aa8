//! A workload from a file: a spec in TOML or YAML, or a batch script.

use super::request::Read;
use super::script;
use crate::failure::Failure;
use std::io::Read as _;
use std::path::Path;
use stipend_server::wire::workload::Submission;
use stipend_sim::scenario::parse_part;

/// No spec and no script is larger.
const BYTES_MAX: u64 = 1 << 20;

/// Reads it. `arguments` are the script's, or take the place of the spec's command.
pub(super) fn read(path: &Path, arguments: Vec<String>) -> Result<Read, Failure> {
    let text = text(path)?;
    let submission = match path.extension().and_then(|end| end.to_str()).unwrap_or_default() {
        "toml" => parse_part::<Submission>(&path.display().to_string(), &text)?,
        "yaml" | "yml" => serde_saphyr::from_str(&text).map_err(|error| wrong_yaml(path, &error))?,
        _ if text.starts_with("#!") || text.lines().any(|line| line.starts_with("#SBATCH")) => return script::read(path, &text, arguments),
        _ => {
            let message = format!("{}: it is neither a spec (.toml, .yaml) nor a script (its first line begins with #!)", path.display());
            return Err(Failure::new(message).hint("a program to run comes behind two dashes: -- ./program"));
        }
    };
    let mut read = Read { submission, notes: Vec::new() };
    if !arguments.is_empty() {
        read.submission.command = arguments;
    }
    Ok(read)
}

fn text(path: &Path) -> Result<String, Failure> {
    let cannot = |error: std::io::Error| Failure::from(error).context(format!("cannot read {}", path.display()));
    let file = std::fs::File::open(path).map_err(cannot)?;
    let mut bytes = Vec::new();
    // One byte more than there may be tells that there are more.
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Failure::new(format!("{}: it is larger than 1 MiB, which no spec and no script needs", path.display())));
    }
    String::from_utf8(bytes).map_err(|_| Failure::new(format!("{}: it is not text in UTF-8", path.display())))
}

fn wrong_yaml(path: &Path, error: &serde_saphyr::Error) -> Failure {
    let place = error.location().map_or(String::new(), |at| format!(":{}:{}", at.line(), at.column()));
    let message = error.without_snippet().to_string();
    // The place is said before already.
    let message = message.lines().next().unwrap_or_default().split(" at line ").next().unwrap_or_default();
    Failure::new(format!("{}{place}: {message}", path.display()))
}
