//! The result for people: one table, policies side by side, and what it says.

mod budgets;
mod cell;
mod meaning;
mod pools;
mod rows;
mod seeds;
pub mod table;
#[cfg(test)]
mod tests;
