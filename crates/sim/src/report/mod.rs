//! The result for people: one table, policies side by side, and what it says.

mod budgets;
mod cell;
pub(crate) mod explained;
pub(crate) mod meaning;
mod rows;
mod seeds;
pub mod sweep;
pub mod table;
#[cfg(test)]
mod tests;
