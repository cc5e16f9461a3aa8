//! Workloads that are made up: streams of similar ones, and a whole lab.

pub(crate) mod behaviour;
pub(crate) mod families;
pub(crate) mod lab;
pub(crate) mod lab_file;
pub(crate) mod phases;
pub(crate) mod recipe;
pub(crate) mod stream;
