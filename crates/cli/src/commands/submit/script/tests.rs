use super::*;
use stipend_server::wire::workload::Submission;

fn read_script(lines: &str) -> Result<Read, String> {
    let text = format!("#!/bin/bash\n{lines}\npython train.py \"$@\"\n");
    read(Path::new("job.sh"), &text, vec!["--lr".into(), "3e-4".into()]).map_err(|failure| failure.to_string())
}

/// The submission without what every script has, as JSON.
fn mapped(lines: &str) -> String {
    let mut read = read_script(lines).expect("it can be read");
    read.submission.command.clear();
    let Submission { name, .. } = &mut read.submission;
    *name = name.take().filter(|name| name != "job.sh");
    let mut json = serde_json::to_value(&read.submission).expect("it is JSON");
    let plain = serde_json::to_value(Submission::default()).expect("it is JSON");
    let object = json.as_object_mut().expect("an object");
    object.retain(|name, value| plain.get(name) != Some(value));
    json.to_string()
}

fn notes(lines: &str) -> Vec<String> {
    read_script(lines).expect("it can be read").notes
}

#[test]
fn what_slurm_calls_otherwise() {
    let lines = "#SBATCH -A lab/nlp --job-name=olmo -p h100,a100\n#SBATCH -N2\n#SBATCH --gpus-per-node=4 # a comment\n#SBATCH --time=1-12:30:00 --requeue\n#SBATCH --mem=100G -c 8 --ntasks-per-node 1\n#SBATCH -a 1-9:4%2 -d afterok:12:w13 -D /scratch --switches=1@10:00\n#SBATCH --constraint=\"nvlink&ib\" --export=NONE,SEED=1\n";
    let expected = r#"{"after":[12,13],"array":"1,5,9%2","budget":"lab/nlp","cpus":8,"env":{"SEED":"1"},"features":["nvlink","ib"],"gpus":4,"members":2,"memory_gib":100,"name":"olmo","pools":["h100","a100"],"same_block":true,"time_limit":"2190m","workdir":"/scratch"}"#;
    assert_eq!(mapped(lines), expected);
    assert_eq!(notes(lines), Vec::<String>::new());
}

#[test]
fn gpus_are_counted_in_four_ways() {
    let gpus = |lines: &str| {
        let submission = read_script(lines).expect("it can be read").submission;
        (submission.members.unwrap_or(0), submission.gpus.unwrap_or(0))
    };
    assert_eq!(gpus("#SBATCH -N 2 -G 8"), (2, 4));
    assert_eq!(gpus("#SBATCH --gres=gpu:a100:8,license:1"), (1, 8));
    assert_eq!(gpus("#SBATCH --gres=gpu:2"), (1, 2));
    assert_eq!(gpus("#SBATCH --gres=gpu"), (1, 1));
    assert_eq!(gpus("#SBATCH --gres gpu:h100"), (1, 1));
    assert_eq!(gpus("#SBATCH -n 16 --ntasks-per-node=8 --gpus-per-task=1"), (2, 8));
    assert_eq!(gpus("#SBATCH -N 3"), (3, 1));
}

#[test]
fn what_has_no_counterpart_is_named() {
    let lines = "#SBATCH -o out.txt --mail-type ALL --exclusive\n#SBATCH --qos=high --gpus=1\nsrun echo $SLURM_PROCID";
    let said = notes(lines);
    assert_eq!(said[0], "job.sh: not understood and left out: -o out.txt, --mail-type ALL, --exclusive, --qos=high");
    assert!(said[1].starts_with("job.sh: it uses SLURM_PROCID, srun, which are not there"), "{said:?}");
    assert_eq!(notes("#SBATCH --mem=4G")[0], "job.sh: it asks for no GPU; a workload has at least 1 here");
    assert!(notes("#SBATCH --gres=gpu:a100:2")[0].contains("name the one of a100 with --pool"));
    assert!(notes("#SBATCH -N 2-4 -G2")[0].contains("a gang has one size here, 2 members"));
}

#[test]
fn flags_of_our_own() {
    let lines = "#SBATCH -G 1 -A lab\n#STIPEND --budget lab/nlp --min-runtime 30m --on-preempt resume";
    assert_eq!(mapped(lines), r#"{"budget":"lab/nlp","gpus":1,"members":1,"min_runtime":"30m","on_preempt":"resume"}"#);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let wrong = |lines: &str, message: &str| assert_eq!(read_script(lines).unwrap_err(), format!("error: job.sh{message}"));
    wrong("#SBATCH --time=soon", ":2: #SBATCH --time=soon: --time: `soon` is not a time such as 90 (minutes), 1:30:00 or 2-12:00:00");
    wrong("\n#SBATCH -N", ":3: #SBATCH -N: --nodes has no value");
    wrong("#SBATCH --mem=4Q", ":2: #SBATCH --mem=4Q: --mem: `Q` is not a unit; it is K, M, G or T");
    wrong("#SBATCH -J \"a", ":2: #SBATCH -J \"a: a quote is not closed");
    wrong("#SBATCH olmo", ":2: #SBATCH olmo: `olmo` is no option");
    wrong("#STIPEND --min-runtme 3m", ":2: #STIPEND --min-runtme 3m: unexpected argument '--min-runtme' found");
    wrong(
        "#SBATCH -N 3 -G 8",
        ": --gpus=8 cannot be parted into 3 equal members; say --gpus-per-node, or a number of nodes that divides it",
    );
}

#[test]
fn lines_behind_the_first_command_are_none() {
    assert_eq!(mapped("#SBATCH -G 2\necho\n#SBATCH -G 4"), r#"{"gpus":2,"members":1}"#);
}

#[test]
fn the_script_runs_as_it_was() {
    let read = read_script("#SBATCH -G 1").expect("it can be read");
    let [shell, c, text, name, rest @ ..] = read.submission.command.as_slice() else { panic!("{:?}", read.submission.command) };
    assert_eq!((shell.as_str(), c.as_str(), name.as_str()), ("/bin/bash", "-c", "job.sh"));
    assert!(text.ends_with("python train.py \"$@\"\n"));
    assert_eq!(rest, ["--lr", "3e-4"]);
    let python = command(Path::new("/x/job.py"), "#!/usr/bin/env python3\n", Vec::new()).expect("a command");
    assert_eq!(python, ["/usr/bin/env", "python3", "/x/job.py"]);
}

#[test]
fn times_as_slurm_writes_them() {
    let limit = |time: &str| mapped(&format!("#SBATCH -G1 -t {time}")).replace(r#""gpus":1,"members":1"#, "");
    assert_eq!(limit("90"), r#"{,"time_limit":"90m"}"#);
    assert_eq!(limit("90:30"), r#"{,"time_limit":"5430s"}"#);
    assert_eq!(limit("2-12"), r#"{,"time_limit":"60h"}"#);
    assert_eq!(limit("UNLIMITED"), "{}");
}
