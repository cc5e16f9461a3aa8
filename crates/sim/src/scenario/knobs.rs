//! `[policy]`: the core's knobs by their own names.

use super::length::{Fraction, Length};
use serde::Deserialize;
use stipend_core::knobs::{Kernel, Knobs};

/// `kernel`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KernelText {
    Fading,
    Sliding,
}

impl From<KernelText> for Kernel {
    fn from(text: KernelText) -> Kernel {
        match text {
            KernelText::Fading => Kernel::Fading,
            KernelText::Sliding => Kernel::Sliding,
        }
    }
}

/// Makes the table and its transfer from one list, so that no knob can be read and then forgotten.
macro_rules! knob_table {
    ($($name:ident: $text:ty),* $(,)?) => {
        /// The knobs as written; each means what the field of the same name of the core's `Knobs` says.
        /// Lengths are written as `"15m"`, parts (`below_share`, `worth_it`, `express_budget_max`, `reservation_gang_min`) as numbers such as 1.1 or 0.25.
        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct KnobsFile {
            $($name: Option<$text>,)*
        }

        impl KnobsFile {
            /// The knobs with what is written set and all else at its default.
            pub(crate) fn knobs(&self) -> Knobs {
                self.over(Knobs::default())
            }

            /// The knobs with what is written set and all else as it is there.
            pub(crate) fn over(&self, mut knobs: Knobs) -> Knobs {
                $(if let Some(value) = self.$name {
                    knobs.$name = value.into();
                })*
                knobs
            }
        }
    };
}

knob_table! {
    lookback: Length,
    kernel: KernelText,
    commitments: bool,
    credit_max: Length,
    below_share: Fraction,
    quantum: Length,
    min_runtime_max: Length,
    end_max: Length,
    start_timeout: Length,
    grace_allocated: Length,
    grace_unallocated: Length,
    checkpoint_wait_max: Length,
    kill_timeout: Length,
    worth_it: Fraction,
    restart_cost: Length,
    age_min: Length,
    head_start_max: Length,
    refund_max: Length,
    express_contract_max: Length,
    express_gpus_max: u32,
    express_budget_max: Fraction,
    reservations_max: u32,
    reservation_gang_min: Fraction,
    shapes_max: u32,
    searches_max: u32,
    retry_every: Length,
}
