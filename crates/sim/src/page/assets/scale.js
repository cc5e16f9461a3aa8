// From figures to pixels, and round figures for axes.

function linear(from, to, start, end) {
  const factor = to === from ? 0 : (end - start) / (to - from);
  return (value) => start + (value - from) * factor;
}

function logarithmic(from, to, start, end) {
  const inner = linear(Math.log(from), Math.log(to), start, end);
  return (value) => inner(Math.log(Math.max(value, from)));
}

// An axis from 0 to a little above `most`, with about `count` round figures on it.
function axisTo(most, count) {
  if (!(most > 0)) return { top: 1, ticks: [0, 1] };
  const power = 10 ** Math.floor(Math.log10(most / count));
  const step = [1, 2, 5, 10].map((times) => times * power).find((value) => value * count >= most * 0.999);
  const ticks = Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, index) => +(index * step).toPrecision(12));
  return { top: most * 1.04, ticks };
}

const TIME_STEPS = [1, 5, 10, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 2 * 86400, 5 * 86400, 10 * 86400, 30 * 86400];

// Points in time, in seconds, with labels that need about `room` pixels each.
function timeTicks(from, to, pixels, room = 64) {
  const least = ((to - from) * room) / Math.max(pixels, 1);
  const step = TIME_STEPS.find((value) => value >= least) ?? TIME_STEPS.at(-1) * Math.ceil(least / TIME_STEPS.at(-1));
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    ticks.push([at, at % 86400 === 0 ? `day ${at / 86400}` : clock(at % 86400)]);
  }
  return ticks;
}

const WAIT_TICKS = [[1, '1s'], [10, '10s'], [60, '1m'], [600, '10m'], [3600, '1h'], [6 * 3600, '6h'], [86400, '1d'], [4 * 86400, '4d'], [30 * 86400, '30d']];
const FACTOR_TICKS = [1, 2, 5, 10, 100, 1000, 1e4, 1e5].map((value) => [value, `${value}×`]);
