//! The daemon's configuration file.
