//! Which characters of what others wrote may be shown as they are: in a terminal, in a table, as somebody's name.

/// Whether a character neither moves a terminal's cursor, ends a line, turns the direction of the text after it, nor stands there unseen.
///
/// The two joiners (U+200C, U+200D) are seen in what stands beside them: Persian and the scripts of India need them.
pub fn is_harmless(c: char) -> bool {
    let ends_line = matches!(c, '\u{2028}' | '\u{2029}');
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let unseen = matches!(
        c,
        '\u{ad}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    );
    !(c.is_control() || ends_line || turns || unseen)
}

/// The text with a replacement character in place of each that is not [harmless](is_harmless).
pub fn harmless(text: &str) -> String {
    text.chars().map(|c| if is_harmless(c) { c } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_neither_moves_the_cursor_nor_turns_the_text_nor_hides() {
        let harmful =
            ["\u{1b}", "\n", "\t", "\u{7f}", "\u{9b}", "\u{2028}", "\u{61c}", "\u{202e}", "\u{2067}", "\u{200b}", "\u{feff}", "\u{e0041}"];
        for text in harmful {
            assert_eq!(harmless(&format!("a{text}b")), "a\u{fffd}b", "{text:?}");
        }
        for text in ["train_lr3", "Zoë 東京 ☃ 👩‍🔬", "می\u{200c}خواهم", "a\u{301}"] {
            assert_eq!(harmless(text), text);
        }
    }
}
