//! Tables without ornament that fit the terminal: one row, one line, and a reason below it where there is no room beside.

use stipend_sim::harmless::harmless;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Blanks between columns.
const GAP: usize = 2;

/// A column that may shrink is never narrower than this, if its content is not.
const SHRUNK: usize = 8;

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Words; they are shown whole.
    Words,
    /// Figures, to the right, shown whole.
    Figures,
    /// Words that are cut where there is no room.
    Shrinks,
    /// Sentences, in the last column only: where there is no room for all of them, each stands below its row.
    Below,
}

/// Before what stands below its row.
const INDENT: &str = "      ";

/// A table that is being filled.
pub(crate) struct Table {
    columns: Vec<Column>,
    /// The first is the header.
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a name for each column.
    pub(crate) fn new(header: &[(&str, Column)]) -> Table {
        let names = header.iter().map(|(name, _)| (*name).to_owned()).collect();
        Table { columns: header.iter().map(|(_, column)| *column).collect(), rows: vec![names] }
    }

    /// Adds a row, one cell a column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.columns.len(), "one cell a column");
        self.rows.push(cells.iter().map(|cell| harmless(cell)).collect());
    }

    /// The whole table, no line wider than `width`, if there is a width.
    pub(crate) fn text(&self, width: Option<usize>) -> String {
        let beside = self.beside(width);
        let widths = self.widths(beside, width);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            lines.push(self.line(row, &widths));
            let below = row[beside..].iter().filter(|cell| index > 0 && !cell.is_empty());
            lines.extend(below.map(|cell| wrap(INDENT, INDENT, cell, width)));
        }
        let ruled = widths.iter().sum::<usize>() + GAP * (widths.len() - 1);
        lines.insert(1, "─".repeat(ruled));
        lines.join("\n")
    }

    fn widest(&self, column: usize) -> usize {
        self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0)
    }

    /// How many columns stand beside each other.
    fn beside(&self, width: Option<usize>) -> usize {
        let count = self.columns.len();
        let whole = (0..count).map(|column| self.widest(column)).sum::<usize>() + GAP * (count - 1);
        let fits = width.is_none_or(|width| whole <= width);
        if fits || self.columns.last() != Some(&Column::Below) { count } else { count - 1 }
    }

    fn widths(&self, columns: usize, width: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..columns).map(|column| self.widest(column)).collect();
        let Some(width) = width else { return widths };
        let room = width.saturating_sub(GAP * (widths.len() - 1));
        while widths.iter().sum::<usize>() > room {
            let shrinks = |index: &usize| self.columns[*index] == Column::Shrinks && widths[*index] > SHRUNK;
            let Some(index) = (0..widths.len()).filter(shrinks).max_by_key(|index| widths[*index]) else { break };
            widths[index] -= 1;
        }
        widths
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(&self.columns).zip(widths).map(|((cell, column), width)| {
            let cell = cut(cell, *width);
            let blanks = " ".repeat(width.saturating_sub(cell.width()));
            if *column == Column::Figures { blanks + &cell } else { cell + &blanks }
        });
        cells.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    }
}

/// The text, cut at the end if it is wider.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    };
    text.chars().take_while(fits).collect::<String>() + "…"
}

/// A text broken at blanks into lines, the first behind `first` and the others behind `next`.
pub(crate) fn wrap(first: &str, next: &str, text: &str, width: Option<usize>) -> String {
    let width = width.unwrap_or(usize::MAX);
    let mut lines = vec![first.to_owned()];
    let mut is_empty = true;
    // A figure is never parted from its unit.
    for word in harmless(text).replace(" %", "\u{a0}%").split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !is_empty && line.width() + 1 + word.width() > width {
            lines.push(format!("{next}{word}"));
            continue;
        }
        line.push_str(if is_empty { "" } else { " " });
        line.push_str(word);
        is_empty = false;
    }
    lines.join("\n").replace('\u{a0}', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table =
            Table::new(&[("id", Column::Figures), ("name", Column::Shrinks), ("state", Column::Words), ("why", Column::Shrinks)]);
        table.row(["w7".into(), "pretraining-of-olmo-4".into(), "running".into(), "".into()]);
        table.row(["w123".into(), "eval\u{1b}[2J".into(), "waiting".into(), "all GPUs are protected until 14:05".into()]);
        table
    }

    #[test]
    fn a_table_is_as_wide_as_its_content_where_there_is_room() {
        let expected = "  id  name                   state    why
────────────────────────────────────────────────────────────────────────
  w7  pretraining-of-olmo-4  running
w123  eval\u{fffd}[2J               waiting  all GPUs are protected until 14:05";
        assert_eq!(table().text(None), expected);
        assert_eq!(table().text(Some(200)), expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 37..90 {
            for line in table().text(Some(width)).lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
        assert!(table().text(Some(40)).contains('…') && table().text(Some(40)).contains("waiting"));
    }

    #[test]
    fn what_has_no_room_beside_a_row_stands_below_it_whole() {
        let mut table = Table::new(&[("id", Column::Figures), ("name", Column::Shrinks), ("why", Column::Below)]);
        table.row(["w7".into(), "train".into(), String::new()]);
        table.row(["w8".into(), "a-name-that-is-long".into(), "all GPUs are protected until 14:05".into()]);
        let beside = "id  name                 why
───────────────────────────────────────────────────────────
w7  train
w8  a-name-that-is-long  all GPUs are protected until 14:05";
        assert_eq!(table.text(None), beside);
        let below = "id  name
───────────────────────
w7  train
w8  a-name-that-is-long
      all GPUs are
      protected until
      14:05";
        assert_eq!(table.text(Some(24)), below);
    }

    #[test]
    fn a_wide_character_counts_twice() {
        assert_eq!(cut("深層学習", 8), "深層学習");
        assert_eq!(cut("深層学習", 7), "深層学…");
        assert_eq!(cut("深層学習", 6), "深層…");
    }

    #[test]
    fn a_text_is_broken_at_blanks_only() {
        assert_eq!(wrap("- ", "  ", "it stands at 87.25 % of its share", Some(20)), "- it stands at\n  87.25 % of its\n  share");
        assert_eq!(wrap("", "", "one line", None), "one line");
    }
}
