//! One figure over several seeds.

use super::rows::Better;
use crate::percentile::nearest_rank;

/// The median of those there are; the lower of two.
pub(super) fn median(figures: &[Option<f64>]) -> Option<f64> {
    let mut figures: Vec<f64> = figures.iter().copied().flatten().collect();
    figures.sort_by(f64::total_cmp);
    nearest_rank(&figures, 50)
}

/// The worst of those there are.
pub(super) fn worst(figures: &[Option<f64>], better: Better) -> Option<f64> {
    let figures = figures.iter().copied().flatten();
    match better {
        Better::Higher => figures.min_by(f64::total_cmp),
        Better::Lower | Better::Neither => figures.max_by(f64::total_cmp),
    }
}
