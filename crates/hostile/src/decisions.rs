//! A trace of decisions out of bytes: when they are used up, all further ones are zero.

use bytes::Bytes;

/// What is left of the bytes.
pub(crate) struct Decisions<'a>(&'a [u8]);

impl<'a> Decisions<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number below `bound`, which must not be 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// One of these, if there is any.
    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let at = self.below(from.len().max(1));
        from.get(at).cloned()
    }

    /// A byte with a length, and so many bytes.
    pub(crate) fn bytes(&mut self) -> Bytes {
        let length = self.below(64).min(self.0.len());
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        Bytes::copy_from_slice(taken)
    }
}
