//! What happens in the demonstration, act by act. Each act waits for what it shows, not for a time.

use super::lab::{Lab, Stopped, Told};
use super::teller::{act, begin};
use crate::commands::explain;
use crate::commands::queue::{sums, table};
use crate::failure::{Answer, Failure, Outcome};
use crate::moment::now_ms;
use crate::output;
use crate::remote::Query;
use serde_json::Value;
use std::io::Read;
use std::time::{Duration, Instant};
use stipend_core::quantity::Span;
use stipend_server::wire::budget::Tree;
use stipend_server::wire::length::Length;
use stipend_server::wire::node::{DrainRequest, Node, Severity};
use stipend_server::wire::workload::{OnPreempt, State, Submission};

/// An act that shows nothing after so long is left.
const PATIENCE: Duration = Duration::from_secs(60);

/// Work that counts steps, writes down every fourth, and goes on from there.
const TRAINING: &str = r#"
file="$STIPEND_CHECKPOINT_DIR/step"
step=$(cat "$file" 2>/dev/null || echo 0)
[ "$step" = 0 ] && echo "starts from nothing" || echo "goes on from step $step"
save() { echo "$step" > "$file" && "$STIPEND" checkpoint; }
trap 'save; echo "told to stop: saved step $step"; exit 1' TERM
while [ "$step" -lt "$STEPS" ]; do
  sleep 0.5 & wait $!
  step=$((step + 1))
  [ $((step % 8)) = 0 ] && save
done
echo "finished after step $step"
"#;

/// Tells the story, and ends with the lab.
pub(in crate::commands) fn tell(mut lab: Lab) -> Outcome {
    match acts(&mut lab) {
        Ok(()) => act("The end", "What still runs is ended now, and the daemon after it.")?,
        Err(Stopped::Interrupted) => output::note("\ninterrupted: what still runs is ended now, and the daemon after it"),
        Err(Stopped::Failed(failure)) => return Err(failure),
    }
    drop(lab);
    output::text("Nothing is left of it. Next: stipend serve, and docs/guides/monday.md")?;
    Ok(Answer::Yes)
}

fn acts(lab: &mut Lab) -> Told<()> {
    let start = Instant::now();
    let tree = lab.daemon.get::<Tree>("/v1/budgets")?;
    act(
        "A lab",
        "Two nodes of eight GPUs (they are not there, but the processes are), and three teams with shares of GPU time. Real daemon, real \
         scheduler; only the lookback is short, so that a minute shows what a week does.",
    )?;
    output::text(&crate::commands::budget::table(&tree).text(output::width()))?;
    begin(&lab.daemon, start)?;
    let sweep = idle_gpus(lab)?;
    fair_shares(lab)?;
    resumed(lab, sweep)?;
    drain(lab)?;
    act("What each team got", "The standing of a budget is what it used and has committed to, of what it was entitled to.")?;
    let tree = lab.daemon.get::<Tree>("/v1/budgets")?;
    output::text(&crate::commands::budget::table(&tree).text(output::width()))?;
    Ok(())
}

/// Dan's work has no contract: it may have what is idle, and gives it back.
fn idle_gpus(lab: &mut Lab) -> Told<u32> {
    act(
        "Idle GPUs",
        "dan submits two trainings of eight GPUs without a contract. They are never charged and never protected: they fill what is idle. \
         They write checkpoints.",
    )?;
    let dan = lab.person("dan")?;
    let mut training = shell("sweep", "lab/eval", 8, TRAINING);
    training.on_preempt = OnPreempt::Resume;
    training.env.insert("STEPS".into(), "36".into());
    let ids = dan.submit(&training, 2)?;
    lab.until(PATIENCE, |lab| count(lab, &ids, State::Running) == ids.len())?;
    lab.pause(Duration::from_secs(5))?;
    Ok(ids[0])
}

/// Three teams want more than there is; the first to ask does not get all.
fn fair_shares(lab: &mut Lab) -> Told<()> {
    act(
        "Fair shares, and a preemption with its reason",
        "ann of lab/nlp submits eight jobs of four GPUs with a contract; right behind her bob of lab/vision submits three, and cai of \
         lab/eval two short tests. Work with a contract takes the GPUs of work without one, so dan's trainings have to go. ann gets what \
         there is; from then on who had least of their share goes first: bob and cai overtake the jobs that ann queued before theirs.",
    )?;
    let job = |name: &str, budget: &str, gpus: u32, seconds: u32| {
        let mut job = shell(name, budget, gpus, &format!("sleep {seconds}"));
        job.min_runtime = Length(Span::minutes(1));
        job
    };
    let mut ids = lab.person("ann")?.submit(&job("pretrain", "lab/nlp", 4, 7), 8)?;
    ids.extend(lab.person("bob")?.submit(&job("detector", "lab/vision", 4, 7), 3)?);
    ids.extend(lab.person("cai")?.submit(&job("test", "lab/eval", 1, 2), 2)?);
    let last = ids[7];
    lab.until(PATIENCE, |lab| count(lab, &ids, State::Running) > 2)?;
    lab.pause(Duration::from_secs(2))?;
    act("Why does the last of ann's jobs wait?", &format!("stipend explain w{last}"))?;
    if let Ok(answer) = lab.daemon.get::<Value>(&format!("/v1/workloads/{last}/explain")) {
        output::text(&explain::text(answer)?)?;
    }
    act("The queue", "stipend queue")?;
    let workloads = lab.workloads()?;
    output::text(&table(&workloads, now_ms()).text(output::width()))?;
    output::text(&format!("{}\n", sums(&workloads)))?;
    lab.until(PATIENCE, |lab| ids.iter().all(|id| state(lab, *id).is_some_and(State::is_over)))?;
    Ok(())
}

/// What was preempted waits again by itself, and goes on from its checkpoint.
fn resumed(lab: &mut Lab, sweep: u32) -> Told<()> {
    act(
        "From the checkpoint",
        &format!("The jobs are done, and dan's trainings run again. Where did w{sweep} go on? stipend logs w{sweep}"),
    )?;
    lab.until(PATIENCE, |lab| state(lab, sweep).is_some_and(|state| state == State::Running || state.is_over()))?;
    lab.until(Duration::from_secs(5), |lab| log(lab, sweep).is_ok_and(|log| log.contains("goes on")))?;
    for line in log(lab, sweep)?.lines() {
        output::text(&format!("       | {}", stipend_sim::harmless::harmless(line)))?;
    }
    Ok(())
}

/// A sick node goes out of service by itself, is repaired, and comes back.
fn drain(lab: &mut Lab) -> Told<()> {
    act(
        "A drain",
        "On-call drains gpu-2 and goes back to bed. Nothing new starts there; what is protected may go on, the rest is stopped and waits \
         again. The node is repaired (here: two seconds of sleep), looked at, and comes back.",
    )?;
    let reason = "uncorrectable memory errors on GPU 3".into();
    let request = DrainRequest { severity: Severity::Sick, reason, until_ms: None };
    lab.daemon.post::<Node>("/v1/nodes/gpu-2/drain", &request, &[])?;
    let ready = |lab: &mut Lab| {
        let nodes = lab.daemon.get::<Vec<Node>>("/v1/nodes").unwrap_or_default();
        nodes.iter().any(|node| node.name == "gpu-2" && node.state == "ready")
    };
    lab.until(PATIENCE, ready)?;
    lab.pause(Duration::from_secs(2))
}

/// A shell script as a workload.
fn shell(name: &str, budget: &str, gpus: u32, script: &str) -> Submission {
    let program = std::env::current_exe().unwrap_or_else(|_| "stipend".into());
    let env = [("STIPEND".to_owned(), program.to_string_lossy().into_owned())];
    Submission {
        name: Some(name.into()),
        budget: budget.into(),
        gpus: Some(gpus),
        command: vec!["/bin/sh".into(), "-c".into(), script.into()],
        env: env.into(),
        ..Submission::default()
    }
}

fn state(lab: &Lab, id: u32) -> Option<State> {
    lab.workloads().ok()?.iter().find(|workload| workload.id == id).map(|workload| workload.state)
}

fn count(lab: &Lab, ids: &[u32], state: State) -> usize {
    lab.workloads().unwrap_or_default().iter().filter(|workload| ids.contains(&workload.id) && workload.state == state).count()
}

/// What it wrote, in all attempts.
fn log(lab: &Lab, id: u32) -> Result<String, Failure> {
    let workload = lab.daemon.get::<stipend_server::wire::workload::Workload>(&format!("/v1/workloads/{id}"))?;
    let mut text = String::new();
    for attempt in 1..=workload.attempts {
        let query = Query::default().with("attempt", Some(attempt));
        lab.daemon.bytes(&query.of(&format!("/v1/workloads/{id}/logs")))?.read_to_string(&mut text)?;
    }
    Ok(text)
}
