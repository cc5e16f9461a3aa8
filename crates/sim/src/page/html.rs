//! Puts the page together: what needs no script is written here, so that the table stands there before anything runs.

use super::Drawn;
use crate::report::explained::explained;
use crate::report::{meaning, table};
use crate::result::RunResult;

const PAGE: &str = include_str!("assets/page.html");

const STYLE: &str = concat!(include_str!("assets/colours.css"), include_str!("assets/page.css"), include_str!("assets/charts.css"));

/// In the order in which they need each other; one scope.
const SCRIPT: &str = concat!(
    "'use strict';\n",
    include_str!("assets/words.js"),
    include_str!("assets/dom.js"),
    include_str!("assets/theme.js"),
    include_str!("assets/data.js"),
    include_str!("assets/scale.js"),
    include_str!("assets/chart.js"),
    include_str!("assets/table.js"),
    include_str!("assets/delivery.js"),
    include_str!("assets/distributions.js"),
    include_str!("assets/bars.js"),
    include_str!("assets/carpet.js"),
    include_str!("assets/paint.js"),
    include_str!("assets/gantt.js"),
    include_str!("assets/gestures.js"),
    include_str!("assets/lease.js"),
    include_str!("assets/overview.js"),
    include_str!("assets/start.js"),
);

/// The whole page. `facts` is JSON.
pub(super) fn assemble(description: &str, runs: &[RunResult], facts: &str, drawn: &[Drawn]) -> String {
    let sentences: String =
        meaning::list(runs).iter().map(|sentence| format!("<li>{}</li>\n", escaped(sentence).replace(" %", "&nbsp;%"))).collect();
    let block = |what: &str, index: usize, data: String| format!("<script type=\"text/plain\" id=\"{what}{index}\">{data}</script>\n");
    let numbered = || drawn.iter().enumerate();
    let figures: String = numbered().map(|(index, drawn)| block("figures", index, drawn.figures.packed())).collect();
    let gantts: String = numbered().map(|(index, drawn)| block("gantt", index, drawn.gantt.packed())).collect();
    let parts = [
        ("TITLE", escaped(&table::title(runs))),
        ("DESCRIPTION", escaped(description.trim())),
        ("STYLE", STYLE.into()),
        ("TABLE", rows(runs)),
        ("SENTENCES", sentences),
        ("FACTS", facts.replace('<', "\\u003c")),
        ("FIGURES", figures),
        ("SCRIPT", SCRIPT.into()),
        ("GANTTS", gantts),
    ];
    fill(PAGE, &parts)
}

/// Replaces each `{{NAME}}`, and looks for none in what it puts there.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut page = String::with_capacity(template.len() + parts.iter().map(|(_, text)| text.len()).sum::<usize>());
    let mut pieces = template.split("{{");
    page.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").expect("every place of the page has an end");
        let (_, text) = parts.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("the page has no part {name}"));
        page.push_str(text);
        page.push_str(rest);
    }
    page
}

/// The table, each row with its explanation.
fn rows(runs: &[RunResult]) -> String {
    let heads: String = runs[0].policies.iter().map(|policy| format!("<th scope=\"col\">{}</th>", escaped(&policy.policy))).collect();
    let mut html = format!("<thead><tr><th scope=\"col\"><span class=\"unseen\">figure</span></th>{heads}</tr></thead>\n<tbody>\n");
    let mut under = None;
    for (index, (label, cells)) in table::cells(runs).enumerate() {
        let depth = (label.len() - label.trim_start().len()) / 2;
        under = if depth == 0 { Some(label) } else { under };
        let text = explained(label, under.filter(|_| depth != 0)).unwrap_or_default();
        let cells: String = cells
            .iter()
            .map(|cell| format!("<td>{}</td>", escaped(cell).replace('\n', "<br>").replace(" %", "&nbsp;%").replace('/', "/<wbr>")))
            .collect();
        html += &format!(
            "<tr><th scope=\"row\" class=\"depth{depth}\"><button type=\"button\" class=\"row\" aria-expanded=\"false\" \
             aria-controls=\"about{index}\" title=\"{}\">{}</button></th>{cells}</tr>\n\
             <tr class=\"about\" id=\"about{index}\" hidden><td colspan=\"{}\"><div>{}</div></td></tr>\n",
            escaped(text),
            escaped(label.trim()),
            runs[0].policies.len() + 1,
            escaped(text),
        );
    }
    html + "</tbody>"
}

/// Text as HTML, also inside an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
