// Words for what the columns carry as numbers, in the order of `encode.rs`, and how figures are written.

const OUTCOMES = ['runs at the end', 'completed', 'failed', 'preempted', 'cancelled', 'reached its time limit', 'lost its node', 'did not start in time'];
const PREEMPTED = 3;
const CLASSES = ['debug', 'medium', 'largest', 'unallocated'];
const ON_PREEMPT = ['resumes from its last checkpoint', 'starts again from nothing', 'ends for good'];
const NODE_STATES = ['ready', 'draining', 'drained', 'repairing', 'lost'];

// `26:05` or `0:00:30`: hours and minutes since the start of the run, as scenarios and reasons write times.
function clock(seconds) {
  const whole = Math.round(seconds);
  const two = (number) => String(number).padStart(2, '0');
  const text = `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}`;
  return whole % 60 ? `${text}:${two(whole % 60)}` : text;
}

// `day 3, 7:30`: the same by days, the first of which is day 0.
function day(seconds) {
  const days = Math.floor(seconds / 86400);
  return `day ${days}, ${clock(seconds - days * 86400)}`;
}

// Both: as reasons write it, and for people.
function moment(seconds) {
  return seconds < 86400 ? clock(seconds) : `${clock(seconds)} (${day(Math.floor(seconds / 60) * 60)})`;
}

// `2 d 3 h`, `12 min 5 s`: the two largest units, as in the core.
function span(seconds) {
  const whole = Math.round(seconds);
  for (const [unit, next, name, nextName] of [[86400, 3600, 'd', 'h'], [3600, 60, 'h', 'min'], [60, 1, 'min', 's']]) {
    if (whole >= unit) {
      const rest = Math.floor((whole % unit) / next);
      return `${Math.floor(whole / unit)} ${name}${rest ? ` ${rest} ${nextName}` : ''}`;
    }
  }
  return `${whole} s`;
}

// `10s`, `4.5m`, `46h`, `12d`: short, for axes.
function shortSpan(seconds) {
  for (const [unit, name] of [[86400, 'd'], [3600, 'h'], [60, 'm']]) {
    if (seconds >= unit) return `${+(seconds / unit).toPrecision(2)}${name}`;
  }
  return `${+seconds.toPrecision(2)}s`;
}

// At most three digits that count.
function figure(value) {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  return String(+value.toPrecision(3));
}

function percent(part) {
  return part === null || !isFinite(part) ? '–' : `${part < 0.9895 || part >= 1 ? +(part * 100).toFixed(1) : Math.min(99.99, part * 100).toFixed(2)} %`;
}

// `olmo` of `lab/nlp/olmo`.
function lastPart(path) {
  return path.split('/').pop();
}
