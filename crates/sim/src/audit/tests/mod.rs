//! Every law on tiny logs: one good story, and for each law one that breaks it and nothing else.

mod doubt;
mod early;
mod ledger;
mod placement;
mod preemption;
mod script;
