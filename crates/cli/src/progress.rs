//! How far several simulations are, in one bar on stderr; it hides itself where stderr is no terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The steps of the bar that one run fills.
const STEPS: u64 = 1000;

/// A bar over all runs.
pub(crate) struct Progress {
    bar: ProgressBar,
}

/// One run's part of the bar.
pub(crate) struct Part<'a> {
    bar: &'a ProgressBar,
    done: u64,
}

impl Progress {
    /// A bar for `runs` runs of the scenario `name`.
    pub(crate) fn new(name: &str, runs: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(STEPS * runs as u64), ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent} % {elapsed}").expect("the template is right");
        bar.set_style(style);
        bar.set_message(name.to_owned());
        Progress { bar }
    }

    /// The part of one run.
    pub(crate) fn part(&self) -> Part<'_> {
        Part { bar: &self.bar, done: 0 }
    }
}

impl Part<'_> {
    /// This fraction of the run is done.
    pub(crate) fn reach(&mut self, fraction: f64) {
        // In range by the clamp.
        let done = (fraction.clamp(0.0, 1.0) * STEPS as f64) as u64;
        if self.done < done {
            self.bar.inc(done - self.done);
            self.done = done;
        }
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.bar.inc(STEPS - self.done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
