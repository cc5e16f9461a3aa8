//! `docs/reference/cli.md` is made of the program's own help: `SNAPSHOTS=overwrite cargo test --release --test docs` writes it anew.

use std::process::Command;

const INTRODUCTION: &str = "\
# The command line

The help of every command, as the program prints it on 80 columns.
A test holds this page against the program.

Data goes to stdout, everything else to stderr.
`sim run` prints a table for people, and with `--format json` [the result](result.md) for programs.
There is no colour and no progress bar where stderr is no terminal.

| exit code | meaning |
|---|---|
| 0 | done, or: it is so |
| 1 | the thing asked about is not so: a law was broken, a workload failed |
| 2 | the request was wrong; the message names what, and what would be right |

`stipend run` exits with the exit code of the workload.

Commands that ask the daemon find it by its socket: in `$STIPEND_DATA`, in `~/.local/share/stipend`, in `/var/lib/stipend`, where root's daemon is.
`--server` or `STIPEND_SERVER` names another place.
On the socket you are who you are on the machine; elsewhere a token says so, in `--token-file` or `STIPEND_TOKEN`.
A workload is named `123` or `w123`.

`stipend completions bash` prints completions for a shell, `stipend man sim run` a manual page.
";

#[test]
fn the_reference_is_the_help() {
    let commands: [&[&str]; 47] = [
        &[],
        &["demo"],
        &["serve"],
        &["submit"],
        &["run"],
        &["queue"],
        &["show"],
        &["explain"],
        &["logs"],
        &["wait"],
        &["cancel"],
        &["hold"],
        &["release"],
        &["budget"],
        &["budget", "tree"],
        &["budget", "show"],
        &["budget", "set"],
        &["budget", "apply"],
        &["budget", "diff"],
        &["budget", "export"],
        &["budget", "history"],
        &["budget", "withdraw"],
        &["usage"],
        &["analyze"],
        &["whatif"],
        &["node", "list"],
        &["node", "drain"],
        &["node", "resume"],
        &["pool", "list"],
        &["events"],
        &["token", "create"],
        &["token", "list"],
        &["token", "revoke"],
        &["backup"],
        &["store", "check"],
        &["store", "restore"],
        &["checkpoint"],
        &["done"],
        &["input"],
        &["sim"],
        &["sim", "run"],
        &["sim", "sweep"],
        &["sim", "explain"],
        &["sim", "check"],
        &["sim", "trace"],
        &["completions"],
        &["man"],
    ];
    let mut page = INTRODUCTION.to_owned();
    for command in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_stipend"))
            .args(command)
            .arg("--help")
            .env("COLUMNS", "80")
            .output()
            .expect("the program starts");
        let help = String::from_utf8(output.stdout).expect("help is text");
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let name = ["stipend"].iter().chain(command).copied().collect::<Vec<_>>().join(" ");
        page += &format!("\n## `{name}`\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    }
    let expected = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
    snapbox::assert_data_eq!(page, snapbox::Data::read_from(expected.as_ref(), None).raw());
}
