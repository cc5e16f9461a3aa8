//! `[rivals]`: how the other policies are set up.

use super::length::{Fraction, Length};
use crate::baseline::{Estimate, FairTreeSettings, PreemptFor, PrioritySettings};
use serde::Deserialize;

/// The settings of the baselines that have any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rivals {
    /// What `easy` and `fair-tree` assume of work that says nothing.
    pub estimate: Estimate,
    /// `priority`.
    pub priority: PrioritySettings,
    /// `fair-tree`.
    pub fair_tree: FairTreeSettings,
}

/// `[rivals]` as written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RivalsFile {
    /// What `easy` and `fair-tree` assume of work that states neither a time limit nor an expected run time.
    estimate: EstimateFile,
    priority: PriorityFile,
    fair_tree: FairTreeFile,
}

impl RivalsFile {
    /// The settings with what is written set and all else at its default.
    pub(crate) fn rivals(&self) -> Rivals {
        Rivals { estimate: self.estimate.settings(), priority: self.priority.settings(), fair_tree: self.fair_tree.settings() }
    }
}

/// `preempt` of `[rivals.fair_tree]`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PreemptText {
    Nobody,
    Scavenger,
    Share,
}

impl From<PreemptText> for PreemptFor {
    fn from(text: PreemptText) -> PreemptFor {
        match text {
            PreemptText::Nobody => PreemptFor::Nobody,
            PreemptText::Scavenger => PreemptFor::Scavenger,
            PreemptText::Share => PreemptFor::Share,
        }
    }
}

/// Makes a section and its transfer from one list, so that no setting can be read and then forgotten.
macro_rules! settings {
    ($(#[$doc:meta])* $file:ident -> $settings:ident { $($name:ident: $text:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $file {
            $($name: Option<$text>,)*
        }

        impl $file {
            fn settings(&self) -> $settings {
                let mut settings = $settings::default();
                $(if let Some(value) = self.$name {
                    settings.$name = value.into();
                })*
                settings
            }
        }
    };
}

settings! {
    /// `[rivals.estimate]`: each field means what that of the same name of [`Estimate`] says.
    EstimateFile -> Estimate {
        contracts: u32,
        least: Length,
    }
}

settings! {
    /// `[rivals.priority]`: each field means what that of the same name of [`PrioritySettings`] says.
    PriorityFile -> PrioritySettings {
        high: Fraction,
        normal: Fraction,
        opt_out: Fraction,
        protected_max: Fraction,
        preempt: bool,
    }
}

settings! {
    /// `[rivals.fair_tree]`: each field means what that of the same name of [`FairTreeSettings`] says.
    FairTreeFile -> FairTreeSettings {
        half_life: Length,
        calc_period: Length,
        weight_fairshare: u32,
        weight_age: u32,
        weight_size: u32,
        weight_qos: u32,
        max_age: Length,
        backfill_interval: Length,
        backfill_jobs: u32,
        backfill_reservations: u32,
        backfill_window: Length,
        preempt: PreemptText,
        exempt: Length,
        share_max: Fraction,
    }
}
