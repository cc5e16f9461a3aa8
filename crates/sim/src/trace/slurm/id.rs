//! Job numbers: `123`, `123_4`, `123_[7-8%1]`, `123+0`, and steps of all of these (`123.batch`, `123_4.0`).

use crate::trace::number::integer;

/// A job's number taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobId {
    /// The job's number; for the task of an array the array's.
    pub(super) job: u64,
    /// The task of an array.
    pub(super) task: Option<u32>,
    /// The component of a heterogeneous job.
    pub(super) component: Option<u32>,
}

/// What a field with a job's number names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A job, or one task of an array.
    Job(JobId),
    /// Tasks of an array that have no record of their own yet: they wait.
    Tasks(JobId),
    /// A step of a job.
    Step,
}

/// Reads a job's number.
pub(super) fn read(text: &[u8]) -> Option<Named> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let job = u64::try_from(integer(&text[..digits])?).ok()?;
    let mut id = JobId { job, ..JobId::default() };
    let mut rest = &text[digits..];
    if let [b'_', tasks @ ..] = rest {
        if tasks.first() == Some(&b'[') {
            return Some(Named::Tasks(id));
        }
        let digits = tasks.iter().take_while(|byte| byte.is_ascii_digit()).count();
        id.task = Some(u32::try_from(integer(&tasks[..digits])?).ok()?);
        rest = &tasks[digits..];
    }
    if let [b'+', component @ ..] = rest {
        let digits = component.iter().take_while(|byte| byte.is_ascii_digit()).count();
        // A `+` with nothing behind it is where a narrow column was cut.
        id.component = u32::try_from(integer(&component[..digits]).unwrap_or(0)).ok().filter(|_| digits > 0);
        rest = &component[digits..];
    }
    match rest {
        [] => Some(Named::Job(id)),
        [b'.', ..] => Some(Named::Step),
        _ => None,
    }
}
