//! The store on real files.

mod basics;
