//! What would become of the queue, and would have become of the past, under other budgets or knobs.

pub mod project;
