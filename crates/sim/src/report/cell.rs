//! How figures are written: short enough that four policies fit beside each other.

/// Where there is nothing to say.
pub(super) const NOTHING: &str = "–";

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A fraction, as percent.
    Percent,
    /// A plain number.
    Number,
    /// A count.
    Count,
    /// Seconds, in the largest fitting unit.
    Seconds,
    /// Hours of a budget's claim.
    ClaimHours,
    /// GPU-hours.
    GpuHours,
    /// How many teams, of how many.
    Teams,
}

impl Unit {
    /// One figure.
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Unit::Percent => percent(value),
            Unit::Number => digits(value),
            Unit::Count | Unit::Teams => format!("{value:.0}"),
            Unit::Seconds => seconds(value),
            Unit::ClaimHours => format!("{}h", digits(value)),
            Unit::GpuHours => gpu_hours(value),
        }
    }

    /// The figures of one cell.
    pub(super) fn cell(self, figures: &[Option<f64>]) -> String {
        if figures.iter().all(Option::is_none) {
            return if figures.is_empty() { String::new() } else { NOTHING.into() };
        }
        let texts: Vec<String> = figures.iter().map(|figure| figure.map_or(NOTHING.into(), |value| self.text(value))).collect();
        texts.join(if self == Unit::Teams { " of " } else { "/" })
    }
}

/// `99.75 %`, and never 100 % of what is not whole.
fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent < 98.95 {
        format!("{percent:.1} %")
    } else if fraction < 1.0 {
        format!("{:.2} %", percent.min(99.99))
    } else {
        format!("{percent:.0} %")
    }
}

/// One decimal below ten where it is not zero, whole numbers above.
fn digits(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}").trim_end_matches(".0").into() } else { format!("{value:.0}") }
}

/// `10s`, `4.5m`, `46h`, `12d`: the unit in which the number is at least 1 and, but for days, below 120 or 48.
fn seconds(seconds: f64) -> String {
    let units = [(86_400.0, 4.0, "d"), (3600.0, 2.0, "h"), (60.0, 2.0, "m")];
    let fitting = units.into_iter().find(|(unit, least, _)| least * unit <= seconds);
    let (unit, _, name) = fitting.unwrap_or((1.0, 0.0, "s"));
    format!("{}{name}", digits(seconds / unit))
}

fn gpu_hours(hours: f64) -> String {
    if hours < 100_000.0 { format!("{hours:.0}") } else { format!("{:.0}k", hours / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn figures_are_short_and_never_flatter() {
        let text = |unit: Unit, value: f64| unit.text(value);
        assert_eq!(text(Unit::Percent, 0.999_99), "99.99 %");
        assert_eq!(text(Unit::Percent, 1.0), "100 %");
        assert_eq!(text(Unit::Percent, 0.9975), "99.75 %");
        assert_eq!(text(Unit::Percent, 0.784), "78.4 %");
        assert_eq!(text(Unit::Seconds, 0.0), "0s");
        assert_eq!(text(Unit::Seconds, 10.0), "10s");
        assert_eq!(text(Unit::Seconds, 119.0), "119s");
        assert_eq!(text(Unit::Seconds, 150.0), "2.5m");
        assert_eq!(text(Unit::Seconds, 16_200.0), "4.5h");
        assert_eq!(text(Unit::Seconds, 165_600.0), "46h");
        assert_eq!(text(Unit::Seconds, 1_036_800.0), "12d");
        assert_eq!(text(Unit::Number, 2.512), "2.5");
        assert_eq!(text(Unit::GpuHours, 733_312.4), "733k");
        assert_eq!(text(Unit::ClaimHours, 18.2), "18h");
    }
}
