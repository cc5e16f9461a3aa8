//! How much anybody may ask: requests a second, streams at once. So nobody can make the daemon slow for the others.

use super::refusal::{Refusal, Reply};
use crate::wire::error::{Code, Problem};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The time over which a rate is averaged.
const WINDOW_S: f64 = 10.0;

/// Above so many users those who asked for nothing lately are forgotten.
const USERS_MAX: usize = 10_000;

/// Streams of everybody, and of one user.
const STREAMS_MAX: usize = 256;
const STREAMS_PER_USER_MAX: usize = 32;

/// What is left to a user.
struct Bucket {
    /// Requests.
    left: f64,
    at: Instant,
}

/// All that is bounded.
pub(super) struct Limits {
    per_second: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
    streams: Arc<Semaphore>,
    streams_of: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A stream that is counted while this is kept.
pub(super) struct Stream {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Limits {
    pub(super) fn new(requests_per_second_max: u32) -> Limits {
        Limits {
            per_second: f64::from(requests_per_second_max.max(1)),
            buckets: Mutex::default(),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            streams_of: Mutex::default(),
        }
    }

    /// Counts a request of a user (nobody is "").
    pub(super) fn request(&self, user: &str) -> Reply<()> {
        self.request_at(user, Instant::now())
    }

    fn request_at(&self, user: &str, now: Instant) -> Reply<()> {
        let full = self.per_second * WINDOW_S;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() > USERS_MAX {
            buckets.retain(|_, bucket| now.duration_since(bucket.at).as_secs_f64() < WINDOW_S);
        }
        let bucket = buckets.entry(user.to_string()).or_insert(Bucket { left: full, at: now });
        bucket.left = full.min(bucket.left + now.duration_since(bucket.at).as_secs_f64() * self.per_second);
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        let whose = if user.is_empty() { "those without a token".to_string() } else { user.to_string() };
        let message = format!("{whose} asked more than {} times a second over ten seconds", self.per_second);
        let refusal = Refusal::from(Problem::new(Code::TooMany, message));
        Err(refusal.hint("several workloads go into one request; GET /v1/events follows changes without asking again").retry_after(1))
    }

    /// Counts a stream of a user, for as long as the answer is kept.
    pub(super) fn stream(&self, user: &str) -> Reply<Stream> {
        let refuse = |what: &str| Refusal::from(Problem::new(Code::TooMany, what)).hint("close one that is no longer read");
        let own = {
            let mut streams_of = self.streams_of.lock().unwrap_or_else(PoisonError::into_inner);
            if streams_of.len() > USERS_MAX {
                streams_of.retain(|_, own| own.available_permits() < STREAMS_PER_USER_MAX);
            }
            let own = streams_of.entry(user.to_string()).or_insert_with(|| Arc::new(Semaphore::new(STREAMS_PER_USER_MAX)));
            own.clone().try_acquire_owned()
        };
        let own = own.map_err(|_| refuse(&format!("{user} has {STREAMS_PER_USER_MAX} streams open; there may be no more")))?;
        let all = self.streams.clone().try_acquire_owned();
        let all = all.map_err(|_| refuse(&format!("{STREAMS_MAX} streams are open; there may be no more")))?;
        Ok(Stream { _all: all, _own: own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_is_allowed_and_a_flood_is_not() {
        let limits = Limits::new(2);
        let start = Instant::now();
        for _ in 0..20 {
            limits.request_at("ada", start).unwrap();
        }
        assert!(limits.request_at("ada", start).unwrap_err().is(Code::TooMany));
        // Somebody else is not touched by it.
        limits.request_at("bob", start).unwrap();
        // A second later there are two more, and not three.
        let later = start + Duration::from_secs(1);
        limits.request_at("ada", later).unwrap();
        limits.request_at("ada", later).unwrap();
        limits.request_at("ada", later).unwrap_err();
    }

    #[test]
    fn users_who_ask_for_nothing_are_forgotten() {
        let limits = Limits::new(1);
        let start = Instant::now();
        for user in 0..=USERS_MAX {
            limits.request_at(&user.to_string(), start).unwrap();
        }
        limits.request_at("ada", start + Duration::from_secs(60)).unwrap();
        assert_eq!(limits.buckets.lock().unwrap().len(), 1);
    }

    #[test]
    fn streams_end_when_they_are_dropped() {
        let limits = Limits::new(1);
        let streams: Vec<Stream> = (0..STREAMS_PER_USER_MAX).map(|_| limits.stream("ada").unwrap()).collect();
        assert!(limits.stream("ada").is_err_and(|refusal| refusal.is(Code::TooMany)));
        limits.stream("bob").unwrap();
        drop(streams);
        limits.stream("ada").unwrap();
    }
}
