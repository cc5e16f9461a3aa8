//! Sweeps: the combinations of values that a scenario is run with, and what came of them.

use crate::result::RunResult;
use crate::scenario::error::ScenarioError;
use serde::{Deserialize, Serialize};

/// More combinations than this are a slip of the pen.
const COMBINATIONS_MAX: usize = 1000;

/// One field of the scenario and the values that it takes, as they were typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The field.
    pub key: String,
    /// At least two, all different, in the order asked for.
    pub values: Vec<String>,
}

/// Which fields are set, and which of them to several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// `key=value` for every combination.
    fixed: Vec<String>,
    /// What is swept, in the order asked for.
    pub axes: Vec<Axis>,
}

/// What came of a sweep: what `stipend sim sweep --format json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepResult {
    /// What was swept.
    pub axes: Vec<Axis>,
    /// Every combination, the last axis turning fastest.
    pub combinations: Vec<Combination>,
}

/// One combination and its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Combination {
    /// One value for each axis, in their order.
    pub values: Vec<String>,
    /// One a seed, each with the same policies, as `stipend sim run --format json` prints them.
    pub results: Vec<RunResult>,
}

impl Sweep {
    /// Reads `key=value` and `key=value,value,…`. A comma inside a TOML string, list or table belongs to the value, and so does `\,`.
    ///
    /// # Errors
    /// Nothing is swept, a field is swept twice, a value is empty or not closed, or there are more than 1,000 combinations.
    pub fn parse(sets: &[String]) -> Result<Sweep, ScenarioError> {
        let (mut fixed, mut axes) = (Vec::new(), Vec::<Axis>::new());
        for set in sets {
            let wrong = |message: String| ScenarioError::Override { text: set.clone(), message };
            let Some((key, text)) = set.split_once('=') else {
                // The scenario says what is wrong with it.
                fixed.push(set.clone());
                continue;
            };
            let values = split(text).map_err(wrong)?;
            if 1 < values.len() && values.iter().any(String::is_empty) {
                return Err(wrong("a value between the commas is empty; a comma that belongs to a value is written \\,".into()));
            }
            let values = distinct(values);
            if let [value] = values.as_slice() {
                fixed.push(format!("{key}={value}"));
                continue;
            }
            let key = key.trim().to_owned();
            if axes.iter().any(|axis| axis.key == key) {
                return Err(wrong(format!("`{key}` is swept twice; give all its values at once")));
            }
            axes.push(Axis { key, values });
        }
        if axes.is_empty() {
            return Err(ScenarioError::Override {
                text: fixed.join(" --set "),
                message: "nothing is swept: give a field several values, such as lookback=1d,7d".into(),
            });
        }
        let sweep = Sweep { fixed, axes };
        let count = sweep.axes.iter().fold(1, |count: usize, axis| count.saturating_mul(axis.values.len()));
        if count > COMBINATIONS_MAX {
            let message = format!("{count} combinations are more than the {COMBINATIONS_MAX} that one sweep may have");
            return Err(ScenarioError::Override { text: sets.join(" --set "), message });
        }
        Ok(sweep)
    }

    /// The values of every combination, the last axis turning fastest.
    pub fn combinations(&self) -> Vec<Vec<String>> {
        self.axes.iter().fold(vec![Vec::new()], |combinations, axis| {
            let with = |values: &Vec<String>| {
                axis.values.iter().map(|value| [values.as_slice(), std::slice::from_ref(value)].concat()).collect::<Vec<_>>()
            };
            combinations.iter().flat_map(with).collect()
        })
    }

    /// The overrides of the scenario for one of the combinations.
    pub fn overrides(&self, values: &[String]) -> Vec<String> {
        let swept = self.axes.iter().zip(values).map(|(axis, value)| format!("{}={value}", axis.key));
        self.fixed.iter().cloned().chain(swept).collect()
    }
}

/// The first of each, in order.
fn distinct(values: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}

/// Splits at the commas that are in no TOML string, list or table and not behind a backslash.
fn split(text: &str) -> Result<Vec<String>, String> {
    let (mut values, mut value) = (Vec::new(), String::new());
    let (mut closers, mut quote) = (Vec::new(), None);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        // A quote or bracket in the middle of a file's name means nothing.
        let begins = value.trim().is_empty() || !closers.is_empty();
        match (c, quote) {
            ('\\', Some('"')) => {
                value.push(c);
                value.extend(rest.next());
                continue;
            }
            (_, Some(open)) => quote = if c == open { None } else { Some(open) },
            ('\\', None) if rest.peek() == Some(&',') => {
                value.extend(rest.next());
                continue;
            }
            ('"' | '\'', None) if begins => quote = Some(c),
            ('[', None) if begins => closers.push(']'),
            ('{', None) if begins => closers.push('}'),
            (c, None) if closers.last() == Some(&c) => _ = closers.pop(),
            (',', None) if closers.is_empty() => {
                values.push(std::mem::take(&mut value).trim().to_owned());
                continue;
            }
            _ => {}
        }
        value.push(c);
    }
    if let Some(open) = quote.or(closers.pop()) {
        return Err(format!("a value is not closed: {open} is missing"));
    }
    values.push(value.trim().to_owned());
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        split(text).expect("it is closed")
    }

    #[test]
    fn commas_part_values_unless_they_belong_to_one() {
        assert_eq!(values("1d,7d"), ["1d", "7d"]);
        assert_eq!(values(r"a\,b.csv, c.csv"), ["a,b.csv", "c.csv"]);
        assert_eq!(values(r#""a,b\",c",d"#), [r#""a,b\",c""#, "d"]);
        assert_eq!(values("[1, 2],[3]"), ["[1, 2]", "[3]"]);
        assert_eq!(values("{ x = [1, ']'] },2"), ["{ x = [1, ']'] }", "2"]);
        assert_eq!(values("it's.csv,b"), ["it's.csv", "b"]);
        assert_eq!(values(""), [""]);
        assert!(split("[1,2").is_err() && split("'a,b").is_err());
    }

    #[test]
    fn every_combination_once_and_what_is_fixed_in_each() {
        let sets = ["a=1,2,1".to_owned(), "nodes=4,4".to_owned(), "b=x,y".to_owned()];
        let sweep = Sweep::parse(&sets).expect("it is right");
        let combinations = sweep.combinations();
        assert_eq!(combinations, [["1", "x"], ["1", "y"], ["2", "x"], ["2", "y"]]);
        assert_eq!(sweep.overrides(&combinations[2]), ["nodes=4", "a=2", "b=x"]);
    }

    #[test]
    fn what_is_no_sweep() {
        let refused = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            Sweep::parse(&sets).expect_err("it is wrong").to_string()
        };
        assert!(refused(&["nodes=4"]).contains("nothing is swept"));
        assert!(refused(&["a=1,2", "a=3,4"]).contains("`a` is swept twice"));
        assert!(refused(&["a=1,,2"]).contains("is empty"));
        let many = format!("a={}", (0..40).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
        assert!(refused(&[&many, &many.replacen('a', "b", 1)]).contains("1600 combinations"));
    }
}
