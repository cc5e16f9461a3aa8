//! Invented failures: a part of all work fails, and where there are families, some fail often and most do not, for ever.

use crate::job::Ends;
use crate::random::mix;
use stipend_core::id::{FamilyId, UserId};
use stipend_core::spec::Gang;

/// How invented work fails.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Families {
    /// The part of all work that fails at its end.
    pub(crate) fails: f64,
    /// Of how many families a user's gangs of one size are, each with a part of its own that fails; 0: nobody can tell, and all fail alike.
    pub(crate) count: u32,
    /// Whether the family tells how work ends instead: what no history can know.
    pub(crate) oracle: bool,
}

/// Tells the draw of a family's failures from its number.
const FAILS: u64 = 0x6661_696c;

impl Families {
    /// The family of one workload, by what is even among its siblings, and what it comes to, by a number from 0 to 1.
    pub(crate) fn draw(&self, user: UserId, gang: Gang, sibling: u64, unit: f64) -> (Option<FamilyId>, Ends) {
        let Some(number) = sibling.checked_rem(self.count.into()) else { return (None, Ends::failing(unit < self.fails)) };
        let family = FamilyId(mix(mix(u64::from(user.0) << 32 | u64::from(gang.gpus().0)) ^ number));
        let fails = unit < self.fails_of(family);
        (Some(if self.oracle { FamilyId(fails.into()) } else { family }), Ends::failing(fails))
    }

    /// The part of a family that fails: uⁿ of an even u, whose mean is the part of all that fails. Most families fail rarely, some nearly always.
    fn fails_of(&self, family: FamilyId) -> f64 {
        let even = (mix(family.0 ^ FAILS) >> 11) as f64 / (1u64 << 53) as f64;
        if self.fails > 0.0 { libm::pow(even, 1.0 / self.fails - 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(families: Families, user: u32) -> f64 {
        let draw = |n: u64| families.draw(UserId(user), Gang::new(1, 8), n, mix(n) as f64 / u64::MAX as f64).1 == Ends::Failed;
        (0..2000).filter(|n| draw(*n)).count() as f64 / 2000.0
    }

    #[test]
    fn families_differ_and_all_together_fail_as_often_as_is_said() {
        let families = Families { fails: 0.3, count: 1, oracle: false };
        let parts: Vec<f64> = (0..400).map(|user| part(families, user)).collect();
        let mean = parts.iter().sum::<f64>() / 400.0;
        assert!((0.27..0.33).contains(&mean), "{mean}");
        assert!(parts.iter().filter(|part| **part < 0.1).count() > 100 && parts.iter().any(|part| *part > 0.9));
        let alike = Families { count: 0, ..families };
        assert!((0..50).all(|user| (0.25..0.35).contains(&part(alike, user))));
    }

    #[test]
    fn an_oracle_tells_and_changes_nothing_else() {
        let told = Families { fails: 0.3, count: 4, oracle: true };
        let draw = |families: Families, n| families.draw(UserId(1), Gang::new(1, 8), n, mix(n) as f64 / u64::MAX as f64);
        for n in 0..500 {
            let (family, ends) = draw(told, n);
            assert_eq!(family, Some(FamilyId((ends == Ends::Failed).into())));
            assert_eq!(ends, draw(Families { oracle: false, ..told }, n).1);
        }
    }
}
