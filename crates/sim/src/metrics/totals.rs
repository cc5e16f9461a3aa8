//! A pool as a whole: what is true now, and its exact integral over time.

use stipend_core::entry::Class;
use stipend_core::quantity::{GpuMs, Time};

/// What is true of the pool at one moment, in GPUs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    /// Capacity that any work may fill.
    pub main: i64,
    /// Capacity that, of allocated work, only debug work may fill.
    pub express: i64,
    /// Held by leases of allocated work.
    pub allocated: i64,
    /// Held by leases of unallocated work.
    pub unallocated: i64,
    /// Charged GPUs of allocated work, running or waiting.
    demand: i64,
    /// Those of debug work.
    demand_debug: i64,
}

impl Level {
    /// Allocated work of this class arrived (`charged` > 0) or left.
    pub(super) fn demand(&mut self, class: Class, charged: i64) {
        self.demand += charged;
        if class == Class::Debug {
            self.demand_debug += charged;
        }
    }

    /// The most that allocated work could hold now, under any order of it.
    fn fillable(&self) -> i64 {
        self.demand.min(self.main + self.express.min(self.demand_debug))
    }
}

/// Integrals of the level since the last [`Totals::clear`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub level: Level,
    at: Option<Time>,
    pub capacity: GpuMs,
    pub allocated: GpuMs,
    pub unallocated: GpuMs,
    pub demand: GpuMs,
    pub fillable: GpuMs,
}

impl Totals {
    /// Sums up to `at`.
    pub(super) fn advance(&mut self, at: Time) {
        let since = self.at.replace(at).unwrap_or(at);
        if since == at {
            return;
        }
        let ms = (at - since).0;
        let level = &self.level;
        self.capacity += GpuMs((level.main + level.express) * ms);
        self.allocated += GpuMs(level.allocated * ms);
        self.unallocated += GpuMs(level.unallocated * ms);
        self.demand += GpuMs(level.demand * ms);
        self.fillable += GpuMs(level.fillable() * ms);
    }

    /// The sums of two pools.
    pub(super) fn plus(&self, other: &Totals) -> Totals {
        Totals {
            capacity: self.capacity + other.capacity,
            allocated: self.allocated + other.allocated,
            unallocated: self.unallocated + other.unallocated,
            demand: self.demand + other.demand,
            fillable: self.fillable + other.fillable,
            ..*self
        }
    }

    /// Forgets what was summed so far; the level stays.
    pub(super) fn clear(&mut self) {
        *self = Totals { level: self.level, at: self.at, ..Totals::default() };
    }
}
