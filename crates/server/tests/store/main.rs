//! The store on real files, with the real core, killed and damaged.

mod backups;
mod damage;
mod dice;
mod full;
mod history;
mod invent;
mod killed;
mod lab;
mod model;
mod pruned;
