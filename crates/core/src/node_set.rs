//! A set of small numbers that finds its lowest member fast: one bit a number, one summary bit a word.

/// A set of node places.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct NodeSet {
    words: Vec<u64>,
    /// Bit `w` is set if word `w` is not empty.
    summary: Vec<u64>,
}

impl NodeSet {
    pub(crate) fn insert(&mut self, place: u32) {
        let word = place as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
            self.summary.resize(word / 64 + 1, 0);
        }
        self.words[word] |= 1 << (place % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    pub(crate) fn remove(&mut self, place: u32) {
        let word = place as usize / 64;
        if word >= self.words.len() {
            return;
        }
        self.words[word] &= !(1 << (place % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
    }

    /// All members, lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        bits(&self.summary).flat_map(|word| bits(&self.words[word as usize..=word as usize]).map(move |bit| word * 64 + bit))
    }
}

fn bits(words: &[u64]) -> impl Iterator<Item = u32> {
    words.iter().enumerate().flat_map(|(index, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                index as u32 * 64 + bit
            })
        })
    })
}
