//! The columns of a log by their names.

/// A column that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    JobId,
    JobIdRaw,
    ArrayJob,
    ArrayTask,
    HetJob,
    HetOffset,
    Cluster,
    Account,
    User,
    Partition,
    Qos,
    State,
    Submit,
    Eligible,
    Start,
    End,
    Elapsed,
    ElapsedRaw,
    Limit,
    Nodes,
    Cpus,
    NodeList,
    AllocTres,
    ReqTres,
    AllocGres,
    ReqGres,
    ExitCode,
    /// The job's name: free text, too.
    Name,
    /// What was typed to submit it: free text, too.
    Line,
    /// Nothing is read of it, but it is free text: what its writer put in may contain the delimiter, or end lines.
    Free,
    /// Nothing is read of it.
    Other,
}

use Column::*;

/// Names of `sacct --format` and of the job table of the accounting database, in lower case.
const NAMES: [(&str, Column); 65] = [
    ("jobid", JobId),
    ("jobidraw", JobIdRaw),
    ("id_job", JobIdRaw),
    ("id_array_job", ArrayJob),
    ("id_array_task", ArrayTask),
    ("het_job_id", HetJob),
    ("pack_job_id", HetJob),
    ("het_job_offset", HetOffset),
    ("pack_job_offset", HetOffset),
    ("cluster", Cluster),
    ("account", Account),
    ("user", User),
    ("uid", User),
    ("id_user", User),
    ("partition", Partition),
    ("qos", Qos),
    ("qosraw", Qos),
    ("id_qos", Qos),
    ("state", State),
    ("submit", Submit),
    ("time_submit", Submit),
    ("eligible", Eligible),
    ("time_eligible", Eligible),
    ("start", Start),
    ("time_start", Start),
    ("end", End),
    ("time_end", End),
    ("elapsed", Elapsed),
    ("elapsedraw", ElapsedRaw),
    ("timelimit", Limit),
    ("timelimitraw", Limit),
    ("allocnodes", Nodes),
    ("nnodes", Nodes),
    ("nodes_alloc", Nodes),
    ("alloccpus", Cpus),
    ("ncpus", Cpus),
    ("cpus_alloc", Cpus),
    ("nodelist", NodeList),
    ("alloctres", AllocTres),
    ("tres_alloc", AllocTres),
    ("reqtres", ReqTres),
    ("tres_req", ReqTres),
    ("allocgres", AllocGres),
    ("gres_alloc", AllocGres),
    ("reqgres", ReqGres),
    ("gres_req", ReqGres),
    ("gres_used", AllocGres),
    ("exitcode", ExitCode),
    ("exit_code", ExitCode),
    ("submitline", Line),
    ("submit_line", Line),
    ("jobname", Name),
    ("job_name", Name),
    ("comment", Free),
    ("admincomment", Free),
    ("admin_comment", Free),
    ("systemcomment", Free),
    ("system_comment", Free),
    ("workdir", Free),
    ("work_dir", Free),
    ("extra", Free),
    ("constraints", Free),
    ("reason", Free),
    ("container", Free),
    ("wckey", Free),
];

impl Column {
    /// The column of this name.
    pub(super) fn named(name: &[u8]) -> Column {
        let name = name.trim_ascii();
        // `JobID%20` is how a width is written where the columns are asked for.
        let name = &name[..memchr::memchr(b'%', name).unwrap_or(name.len())];
        NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes())).map_or(Other, |&(_, column)| column)
    }

    /// Whether it is one that only a log of Slurm has.
    pub(super) fn is_of_slurm(self) -> bool {
        matches!(
            self,
            State | Submit | Eligible | Start | End | Elapsed | ElapsedRaw | Limit | AllocTres | ReqTres | AllocGres | ReqGres | ExitCode
        )
    }

    /// Whether it is text that may contain anything.
    pub(super) fn is_free(self) -> bool {
        matches!(self, Name | Line | Free)
    }

    /// Whether a list in it may contain commas.
    pub(super) fn is_list(self) -> bool {
        matches!(self, AllocTres | ReqTres | AllocGres | ReqGres | NodeList)
    }
}

/// Logs without a header that are known by their columns: what well-known tools ask of `sacct`.
pub(super) const HEADERLESS: [&str; 1] = [
    // hb-jobinfo
    "JobID,JobName,User,Partition,NodeList,NNodes,NCPUs,NTasks,State,Submit,Start,End,Timelimit,Elapsed,TotalCPU,CPUTime,UserCPU,SystemCPU,\
     ReqMem,MaxRSS,MaxVMSize,ReqTRES,AllocTRES,TRESUsageInMax,TRESUsageInTot,TRESUsageOutTot,MaxDiskRead,MaxDiskWrite,MaxRSSNode,MaxRSSTask,\
     MaxVMSizeNode,MaxVMSizeTask,MaxDiskReadNode,MaxDiskReadTask,MaxDiskWriteNode,MaxDiskWriteTask,Comment",
];
