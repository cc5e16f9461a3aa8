//! The event log as others read it: JSON lines, one object a line, in order.
//!
//! [`line`] says what each line holds, once for both directions; [`LogWriter`] makes it from the entries of a run, [`LogReader`] reads
//! it back. Fields may be added to a line later, so the reader passes over fields it does not know; an event it does not know, or a
//! field that is missing, is an error that names the line.

mod convert;
pub mod knobs;
pub mod line;
mod range;
mod reader;
mod writer;

pub use convert::event;
pub(crate) use convert::licence;
pub use reader::{LogError, LogReader};
pub use writer::LogWriter;
