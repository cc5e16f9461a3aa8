//! What the service is told.

use super::{Service, Who};
use crate::driver::Report;
use crate::wire::budget::{Changeset, ChangesetRequest};
use crate::wire::error::Problem;
use crate::wire::node::{DrainRequest, Node};
use crate::wire::token::{NewToken, Token, TokenRequest};
use crate::wire::workload::{Submission, Submitted, Workload};
use tokio::sync::oneshot;

/// An answer to whoever asked.
pub type Answer<T> = Result<T, Problem>;

/// Where it goes.
pub(crate) type Reply<T> = oneshot::Sender<Answer<T>>;

/// A question that the service's own state answers; it changes nothing.
pub(crate) type Question = Box<dyn FnOnce(&Service) + Send>;

/// Everything that reaches the service.
pub(crate) enum Input {
    Submit {
        who: Who,
        key: Option<String>,
        submissions: Vec<Submission>,
        reply: Reply<Submitted>,
    },
    Cancel {
        who: Who,
        workload: u32,
        reason: Option<String>,
        reply: Reply<Workload>,
    },
    Hold {
        who: Who,
        workload: u32,
        reply: Reply<Workload>,
    },
    Release {
        who: Who,
        workload: u32,
        reply: Reply<Workload>,
    },
    ChangeBudgets {
        who: Who,
        request: ChangesetRequest,
        dry_run: bool,
        reply: Reply<Changeset>,
    },
    Withdraw {
        who: Who,
        changeset: u64,
        reply: Reply<Changeset>,
    },
    Drain {
        who: Who,
        node: String,
        request: DrainRequest,
        reply: Reply<Node>,
    },
    Resume {
        who: Who,
        node: String,
        reply: Reply<Node>,
    },
    MakeToken {
        who: Who,
        request: TokenRequest,
        reply: Reply<NewToken>,
    },
    RevokeToken {
        who: Who,
        token: u64,
        reply: Reply<Token>,
    },
    Ask(Question),
    Report(Report),
    /// Everything is written down and the thread ends.
    Shutdown,
}
