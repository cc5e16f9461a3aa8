//! The result for people: one table, policies side by side, and what it says.

pub mod analysis;
mod budgets;
mod cell;
pub(crate) mod explained;
pub(crate) mod meaning;
mod pools;
mod rows;
mod seeds;
pub mod sweep;
pub mod table;
#[cfg(test)]
mod tests;
pub mod trace;
mod words;

pub(crate) use words::{count, date, duration, shortened};
