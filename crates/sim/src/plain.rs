//! What the readers of TOML and JSON say is expected and found, in words that are not Rust's.

/// What a type of a field is called by its reader, and by people.
const EXPECTED: [(&str, &str); 15] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number from 0 on"),
    ("i16", "a whole number from -32768 to 32767"),
    ("i32", "a whole number"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a string", "a text in quotes"),
    ("a borrowed string", "a text in quotes"),
    ("a sequence", "a list such as [1, 2]"),
    ("a map", "a section with fields"),
    ("string or map", "a name, or a section with fields"),
    ("option", "a value"),
];

/// What is there, called by its reader and by people.
const FOUND: [(&str, &str); 10] = [
    ("invalid type: string ", "it is the text "),
    ("invalid type: integer ", "it is the number "),
    ("invalid type: floating point ", "it is the number "),
    ("invalid type: boolean ", "it is "),
    ("invalid type: sequence", "it is a list"),
    ("invalid type: map", "it is a section"),
    ("invalid type: null", "it is null"),
    ("invalid value: integer ", "it is the number "),
    ("invalid value: floating point ", "it is the number "),
    ("invalid value: string ", "it is the text "),
];

/// A reader's message in plain words; anything else as it is.
pub fn plain(message: &str) -> String {
    let Some((kind, found)) = FOUND.iter().find(|(kind, _)| message.contains(kind)) else { return message.into() };
    let said = message.replacen(kind, found, 1);
    let Some((before, expected)) = said.rsplit_once(", expected ") else { return said };
    // Where it stands may follow in brackets.
    let at = [" (", " at line "].into_iter().filter_map(|mark| expected.find(mark)).min();
    let (name, place) = at.map_or((expected, ""), |at| expected.split_at(at));
    let (name, place) = name.find('\n').map_or((name, place), |at| name.split_at(at));
    let plain = match EXPECTED.iter().find(|(known, _)| *known == name) {
        Some((_, plain)) => plain,
        None if name.starts_with("struct ") => "a section with fields",
        None => return said,
    };
    format!("{before}; expected {plain}{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_called_by_what_one_writes() {
        let cases = [
            ("invalid type: string \"\", expected u32", "it is the text \"\"; expected a whole number from 0 to 4294967295"),
            ("invalid value: integer `-1`, expected u64", "it is the number `-1`; expected a whole number from 0 on"),
            ("invalid type: integer `3`, expected a string", "it is the number `3`; expected a text in quotes"),
            ("invalid type: boolean `true`, expected struct PoolFile", "it is `true`; expected a section with fields"),
            (
                "x: invalid value: integer `-2`, expected u32 (column 7)",
                "x: it is the number `-2`; expected a whole number from 0 to 4294967295 (column 7)",
            ),
            ("invalid type: null, expected a boolean at line 1 column 3", "it is null; expected true or false at line 1 column 3"),
            ("invalid type: integer `0`, expected a length of time", "it is the number `0`, expected a length of time"),
            ("missing field `name`", "missing field `name`"),
        ];
        for (message, expected) in cases {
            assert_eq!(plain(message), expected);
        }
    }
}
