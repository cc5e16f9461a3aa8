//! The result for people.

pub mod table;
