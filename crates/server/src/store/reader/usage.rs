//! GPU time as it was charged.

use super::super::error::Fault;
use super::Reader;
use crate::wire::error::Problem;

/// GPU time of a budget in a pool in an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// When the hour begins.
    pub hour_ms: i64,
    /// The leaf's number.
    pub budget: u32,
    /// The pool's number.
    pub pool: u16,
    /// Charged for leases, less refunds.
    pub run_gpu_ms: i64,
    /// Charged for GPUs held for a claimant, less refunds.
    pub held_gpu_ms: i64,
}

/// GPU time of a user in a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserUsage {
    /// The user's number.
    pub user: u32,
    /// The leaf's number.
    pub budget: u32,
    /// The pool's number.
    pub pool: u16,
    /// Charged, less refunds.
    pub gpu_ms: i64,
}

const HOUR_MS: i64 = 3_600_000;

impl Reader {
    /// What was charged in the hours that begin in a period, by hour, budget and pool. What runs is charged when it ends, or is stopped.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn usage(&self, from_ms: i64, to_ms: i64) -> Result<Vec<Usage>, Problem> {
        let query = "SELECT hour, budget, pool, sum(gpu_ms * run), sum(gpu_ms * (1 - run)) FROM charges
            WHERE hour >= ?1 AND hour < ?2 GROUP BY hour, budget, pool ORDER BY hour, budget, pool";
        let find = || -> Result<_, Fault> {
            let mut select = self.conn.prepare_cached(query)?;
            let rows = select.query_map(hours(from_ms, to_ms), |row| {
                let hour_ms = row.get::<_, i64>(0)? * HOUR_MS;
                Ok(Usage { hour_ms, budget: row.get(1)?, pool: row.get(2)?, run_gpu_ms: row.get(3)?, held_gpu_ms: row.get(4)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        self.told(find())
    }

    /// What was charged in the hours that begin in a period, by user, budget and pool.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn usage_by_user(&self, from_ms: i64, to_ms: i64) -> Result<Vec<UserUsage>, Problem> {
        let query = "SELECT user, budget, pool, sum(gpu_ms) FROM charges
            WHERE hour >= ?1 AND hour < ?2 GROUP BY user, budget, pool ORDER BY user, budget, pool";
        let find = || -> Result<_, Fault> {
            let mut select = self.conn.prepare_cached(query)?;
            let rows = select.query_map(hours(from_ms, to_ms), |row| {
                Ok(UserUsage { user: row.get(0)?, budget: row.get(1)?, pool: row.get(2)?, gpu_ms: row.get(3)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        self.told(find())
    }
}

/// The hours that begin in a period.
fn hours(from_ms: i64, to_ms: i64) -> (i64, i64) {
    let up = |ms: i64| ms.div_euclid(HOUR_MS) + i64::from(ms.rem_euclid(HOUR_MS) > 0);
    (up(from_ms), up(to_ms))
}
