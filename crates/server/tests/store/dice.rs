//! Chance from a seed: SplitMix64 (Steele, Lea, Flood 2014).

pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to and without `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// Something, or nothing.
    pub(crate) fn maybe<T>(&mut self, make: impl FnOnce(&mut Dice) -> T) -> Option<T> {
        if self.once_in(2) { Some(make(self)) } else { None }
    }

    /// Several, or none.
    pub(crate) fn some<T>(&mut self, mut make: impl FnMut(&mut Dice) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| make(self)).collect()
    }

    /// A text that is not easy on anybody.
    pub(crate) fn text(&mut self) -> String {
        (*self.pick(&["", "a", "train.py", "über/alles", "\"'; DROP TABLE lines; --", "line\nline", "%_\\", "🦀", "\u{0}"])).to_owned()
    }
}
