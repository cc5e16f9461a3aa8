//! Shares from a file: a name and a weight a line, such as the nodes of each virtual cluster.

use super::columns::{names, needed};
use super::csv::{Fields, record};
use super::input::Input;
use super::number::thousandths;
use std::collections::HashSet;
use std::io::Read;

/// What the weights may be called in a header; the other column is the name.
const WEIGHTS: [&str; 7] = ["share", "shares", "weight", "nodes", "node num", "node_num", "gpus"];

/// More lines than this are a slip of the pen.
const LINES_MAX: usize = 100_000;

/// Names with their weights, in thousandths of the file's unit, in the file's order.
pub(crate) fn read(reader: impl Read) -> Result<Vec<(String, u64)>, String> {
    let io = |error: std::io::Error| error.to_string();
    let mut input = Input::open(reader).map_err(io)?;
    let mut fields = Fields::default();
    let header = record(&mut input).map_err(io)?.map(|line| names(line.text, &mut fields)).unwrap_or_default();
    let weight = header.iter().position(|name| WEIGHTS.contains(&name.to_ascii_lowercase().as_str()));
    let (Some(weight), 2) = (weight, header.len()) else {
        return Err(format!(
            "line 1: `{}`: expected a header of two columns, a name and one of {}, such as team,share",
            header.join(","),
            WEIGHTS.join(", ")
        ));
    };
    let (mut shares, mut seen) = (Vec::new(), HashSet::new());
    while let Some(line) = record(&mut input).map_err(io)? {
        let text = line.text;
        if text.trim_ascii().is_empty() {
            continue;
        }
        let wrong = |message: String| format!("line {}: {message}", line.number);
        fields.cut(text);
        if line.cut || fields.len() != 2 {
            return Err(wrong(format!("has {} fields; a name and a weight are expected", fields.len())));
        }
        let name = String::from_utf8_lossy(&fields.get(text, 1 - weight)).into_owned();
        let value = needed(&fields.get(text, weight), "weight, a number from 0 on", thousandths).map_err(wrong)?;
        if !seen.insert(name.clone()) {
            return Err(wrong(format!("`{name}` stands in the file twice")));
        }
        if shares.len() == LINES_MAX {
            return Err(wrong(format!("more than {LINES_MAX} names")));
        }
        shares.push((name, value));
    }
    match shares.iter().any(|(_, value)| *value > 0) {
        true => Ok(shares),
        false => Err("no line has a weight above 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_weights_in_either_order() {
        let expected = vec![("a".to_string(), 64_000), ("b".into(), 2_500)];
        assert_eq!(read(b"vc,node num\na,64\n\nb,2.5\n".as_slice()), Ok(expected.clone()));
        assert_eq!(read(b"share,team\r\n64,a\r\n2.5,\"b\"\r\n".as_slice()), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text: &str| read(text.as_bytes()).expect_err("it is wrong");
        assert!(wrong("a,b\n1,2\n").starts_with("line 1: `a,b`: expected a header"));
        assert_eq!(wrong("vc,nodes\na,1\na,2\n"), "line 3: `a` stands in the file twice");
        assert_eq!(wrong("vc,nodes\na,many\n"), "line 2: `many` is no weight, a number from 0 on");
        assert_eq!(wrong("vc,nodes\na\n"), "line 2: has 1 fields; a name and a weight are expected");
        assert_eq!(wrong("vc,nodes\na,0\n"), "no line has a weight above 0");
    }
}
