//! A table by id: ids only grow, old entries go, and memory follows what is live. A copy shares pages until one of the two is changed there.

use std::sync::Arc;

const PAGE: usize = 256;

/// Values by a number that is never reused; pages whose values are all gone are given back.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Table<T> {
    pages: Vec<Option<Arc<Page<T>>>>,
    len: usize,
}

#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Page<T> {
    values: Box<[Option<T>]>,
    live: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { pages: Vec::new(), len: 0 }
    }
}

impl<T: Clone> Table<T> {
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        let page = self.pages.get(id as usize / PAGE)?.as_ref()?;
        page.values[id as usize % PAGE].as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        let page = Arc::make_mut(self.pages.get_mut(id as usize / PAGE)?.as_mut()?);
        page.values[id as usize % PAGE].as_mut()
    }

    /// Puts a value under an id that has none.
    pub(crate) fn insert(&mut self, id: u32, value: T) {
        let index = id as usize / PAGE;
        if index >= self.pages.len() {
            self.pages.resize_with(index + 1, || None);
        }
        let empty = || Arc::new(Page { values: (0..PAGE).map(|_| None).collect(), live: 0 });
        let page = Arc::make_mut(self.pages[index].get_or_insert_with(empty));
        let old = page.values[id as usize % PAGE].replace(value);
        assert!(old.is_none(), "an id is never reused");
        page.live += 1;
        self.len += 1;
    }

    /// Takes a value out.
    pub(crate) fn remove(&mut self, id: u32) -> Option<T> {
        let slot = self.pages.get_mut(id as usize / PAGE)?;
        let page = Arc::make_mut(slot.as_mut()?);
        let value = page.values[id as usize % PAGE].take()?;
        page.live -= 1;
        self.len -= 1;
        if page.live == 0 {
            *slot = None;
        }
        Some(value)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.pages.iter().enumerate().flat_map(|(p, page)| {
            page.iter().flat_map(move |page| {
                page.values.iter().enumerate().filter_map(move |(i, v)| v.as_ref().map(|v| ((p * PAGE + i) as u32, v)))
            })
        })
    }
}
