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

#[cfg(test)]
mod tests {
    use crate::baseline::{FairTreeSettings, PreemptFor, PrioritySettings};
    use crate::scenario::Scenario;
    use stipend_core::quantity::{Ppm, Span};

    const LEAST: &str = "name = \"t\"\ndescription = \"d\"\nmeasure = \"1d\"\n[pool]\nnodes = 1\n[[budgets]]\npath = \"lab\"\n\
        [[workloads]]\nname = \"w\"\nbudget = \"lab\"\ngang = \"1\"\nwork = \"1h\"\n";

    /// With every setting written as a field of the scenario, and with every one given as `--set`.
    fn both(section: &str, written: &[&str]) -> [Scenario; 2] {
        let scenario = |text: &str, sets: &[String]| Scenario::parse("t.toml", text, sets).unwrap_or_else(|error| panic!("{error}"));
        let sets: Vec<String> = written.iter().map(|line| format!("rivals.{section}.{}", line.replace(" = ", "="))).collect();
        [scenario(&format!("{LEAST}[rivals.{section}]\n{}\n", written.join("\n")), &[]), scenario(LEAST, &sets)]
    }

    #[test]
    fn every_setting_of_fair_tree_comes_from_the_scenario() {
        let written = [
            "half_life = \"3d\"",
            "calc_period = \"7m\"",
            "weight_fairshare = 11",
            "weight_age = 12",
            "weight_size = 13",
            "weight_qos = 14",
            "max_age = \"2d\"",
            "backfill_interval = \"90s\"",
            "backfill_jobs = 15",
            "backfill_reservations = 16",
            "backfill_window = \"1d\"",
            "preempt = \"scavenger\"",
            "exempt = \"2h\"",
            "share_max = 0.5",
        ];
        let expected = FairTreeSettings {
            half_life: Span::days(3),
            calc_period: Span::minutes(7),
            weight_fairshare: 11,
            weight_age: 12,
            weight_size: 13,
            weight_qos: 14,
            max_age: Span::days(2),
            backfill_interval: Span::seconds(90),
            backfill_jobs: 15,
            backfill_reservations: 16,
            backfill_window: Span::days(1),
            preempt: PreemptFor::Scavenger,
            exempt: Span::hours(2),
            share_max: Ppm(500_000),
        };
        both("fair_tree", &written).iter().for_each(|scenario| assert_eq!(scenario.rivals.fair_tree, expected));
    }

    #[test]
    fn every_setting_of_priority_comes_from_the_scenario() {
        let written = ["high = 0.1", "normal = 0.2", "opt_out = 0.3", "protected_max = 0.4", "preempt = false"];
        let [high, normal, opt_out, protected_max] = [1, 2, 3, 4].map(|tenths| Ppm(tenths * 100_000));
        let expected = PrioritySettings { high, normal, opt_out, protected_max, preempt: false };
        both("priority", &written).iter().for_each(|scenario| assert_eq!(scenario.rivals.priority, expected));
    }

    #[test]
    fn whom_qos_preempt_is_one_of_three_words() {
        for (word, preempt) in [("nobody", PreemptFor::Nobody), ("scavenger", PreemptFor::Scavenger), ("share", PreemptFor::Share)] {
            for scenario in both("fair_tree", &[&format!("preempt = \"{word}\"")]) {
                assert_eq!(scenario.rivals.fair_tree.preempt, preempt);
            }
        }
        let wrong = Scenario::parse("t.toml", LEAST, &["rivals.fair_tree.preempt=everybody".into()]);
        let message = wrong.map(|_| ()).expect_err("there is no such word").to_string();
        assert!(["nobody", "scavenger", "share"].iter().all(|word| message.contains(word)), "{message}");
    }
}
