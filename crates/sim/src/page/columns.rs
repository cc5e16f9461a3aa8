//! Columns of numbers, small enough for a page: differences as varints, deflated, as base64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

/// Numbers one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    bytes: Vec<u8>,
    last: i64,
}

impl Column {
    /// Seven bits a byte, the lowest first; the eighth says that more follow.
    pub(super) fn number(&mut self, mut value: u64) {
        while 0x7f < value {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A number of either sign: 0, −1, 1, −2, … are 0, 1, 2, 3, …
    pub(super) fn signed(&mut self, value: i64) {
        self.number((value << 1 ^ value >> 63) as u64);
    }

    /// The difference from the last number given to this function.
    pub(super) fn step(&mut self, value: i64) {
        self.signed(value - self.last);
        self.last = value;
    }
}

/// Columns with their names, in one piece.
#[derive(Clone, Debug, Default)]
pub(super) struct Block(Vec<u8>);

impl Block {
    /// Adds a column.
    pub(super) fn add(&mut self, name: &str, column: Column) {
        for part in [name.as_bytes(), &column.bytes] {
            let mut length = Column::default();
            length.number(part.len() as u64);
            self.0.extend(length.bytes);
            self.0.extend(part);
        }
    }

    /// As the page carries it.
    pub(super) fn packed(&self) -> String {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(7));
        encoder.write_all(&self.0).expect("memory takes everything");
        BASE64_STANDARD.encode(encoder.finish().expect("memory takes everything"))
    }
}

#[cfg(test)]
mod tests {
    use super::Column;

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        let mut column = Column::default();
        [0, 127, 128, 300].into_iter().for_each(|value| column.number(value));
        column.signed(-2);
        column.step(5);
        column.step(4);
        assert_eq!(column.bytes, [0, 0x7f, 0x80, 1, 0xac, 2, 3, 10, 1]);
    }
}
