//! Identities: small numbers, so that tables are arrays and no order depends on a name.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(pub $inner);

        impl $name {
            /// This id as an index into a table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A workload; the shell numbers them from 0 upwards and never reuses a number.
    WorkloadId(u32), "w"
);
id!(
    /// A budget: a node of the funded tree. Never reused.
    BudgetId(u32), "b"
);
id!(
    /// A user who submits.
    UserId(u32), "u"
);
id!(
    /// A node: one machine with GPUs.
    NodeId(u32), "n"
);
id!(
    /// A pool: nodes with one kind of GPU, scheduled together.
    PoolId(u16), "p"
);
id!(
    /// A promised latest start of one workload. Never reused.
    ReservationId(u32), "r"
);
id!(
    /// A family: work that is alike, such as one user's runs of one script at one size. The shell says what is.
    FamilyId(u64), "f"
);
id!(
    /// A block: nodes behind one leaf switch or NVLink domain.
    BlockId(u32), "k"
);

/// One attempt of one workload holding GPUs. Also the drivers' idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LeaseId {
    /// The workload.
    pub workload: WorkloadId,
    /// Counted from 1.
    pub attempt: u32,
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.workload, self.attempt)
    }
}
