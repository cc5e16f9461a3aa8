//! What a batch script asks for in Slurm's terms (nodes, tasks, totals), and what that is here: members and what each of them has.

use stipend_server::wire::workload::Submission;

/// What the lines said.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// What is the same here.
    pub(super) submission: Submission,
    pub(super) members: Option<u32>,
    pub(super) tasks: Option<u32>,
    pub(super) tasks_per_member: Option<u32>,
    pub(super) gpus: Option<Gpus>,
    pub(super) cpus_per_task: Option<u32>,
    pub(super) cpus_per_gpu: Option<u32>,
    /// In MiB, as those below.
    pub(super) memory: Option<u64>,
    pub(super) memory_per_cpu: Option<u64>,
    pub(super) memory_per_gpu: Option<u64>,
    /// A kind of GPU that it named.
    pub(super) gpu_kind: Option<String>,
    notes: Vec<String>,
    not_understood: Vec<String>,
}

/// How GPUs were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gpus {
    Total(u32),
    PerMember(u32),
    PerTask(u32),
}

impl Asked {
    /// Something has another meaning here.
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// An option has no meaning here.
    pub(super) fn not_understood(&mut self, option: String) {
        self.not_understood.push(option);
    }

    /// The submission, and what should be said about it.
    pub(super) fn submission(mut self) -> Result<(Submission, Vec<String>), String> {
        let members = self.members.unwrap_or_else(|| match (self.tasks, self.tasks_per_member) {
            (Some(tasks), Some(each)) => tasks.div_ceil(each.max(1)),
            _ => 1,
        });
        let tasks = self.tasks_per_member.unwrap_or_else(|| self.tasks.unwrap_or(1).div_ceil(members.max(1))).max(1);
        let gpus = self.gpus_per_member(members, tasks)?;
        if tasks > 1 {
            self.note(format!("it has {tasks} tasks a node: each member runs the script once, which must start them itself"));
        }
        let cpus = self.cpus_per_task.map(|each| each * tasks).or(self.cpus_per_gpu.map(|each| each * gpus));
        let of_cpus = self.memory_per_cpu.zip(cpus).map(|(each, cpus)| each * u64::from(cpus));
        let mebibytes = self.memory.or(self.memory_per_gpu.map(|each| each * u64::from(gpus))).or(of_cpus);
        let submission = &mut self.submission;
        submission.members = Some(members);
        submission.gpus = Some(gpus);
        submission.cpus = cpus;
        submission.memory_gib = mebibytes.filter(|all| 0 < *all).map(|all| all.div_ceil(1024));
        if !self.not_understood.is_empty() {
            self.notes.push(format!("not understood and left out: {}", self.not_understood.join(", ")));
        }
        Ok((self.submission, self.notes))
    }

    fn gpus_per_member(&mut self, members: u32, tasks: u32) -> Result<u32, String> {
        match self.gpus {
            None | Some(Gpus::PerMember(0) | Gpus::Total(0) | Gpus::PerTask(0)) => {
                self.note("it asks for no GPU; a workload has at least 1 here".into());
                Ok(1)
            }
            Some(Gpus::PerMember(gpus)) => Ok(gpus),
            Some(Gpus::PerTask(gpus)) => Ok(gpus * tasks),
            Some(Gpus::Total(gpus)) if gpus.is_multiple_of(members.max(1)) => Ok(gpus / members.max(1)),
            Some(Gpus::Total(gpus)) => Err(format!(
                "--gpus={gpus} cannot be parted into {members} equal members; say --gpus-per-node, or a number of nodes that divides it"
            )),
        }
    }
}
