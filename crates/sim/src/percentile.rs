//! Percentiles by nearest rank: always a value that occurred.

/// The `percent`-th percentile of sorted values: the smallest that at least `percent` % of them do not exceed; `None` of no values.
pub(crate) fn nearest_rank<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::nearest_rank;

    #[test]
    fn is_a_value_that_occurred() {
        assert_eq!(nearest_rank::<u32>(&[], 50), None);
        assert_eq!(nearest_rank(&[7], 50), Some(7));
        assert_eq!(nearest_rank(&[1, 2, 3, 4], 50), Some(2));
        assert_eq!(nearest_rank(&[1, 2, 3, 4, 5], 50), Some(3));
        assert_eq!(nearest_rank(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 90), Some(9));
        assert_eq!(nearest_rank(&[1, 2, 3], 0), Some(1));
        assert_eq!(nearest_rank(&[1, 2, 3], 100), Some(3));
    }
}
