// How long work waited, and how much slower it was than alone: all policies in one picture a class.

const CLASS_TEXTS = {
  debug: ['debug', 'at most 8 GPUs and 15 minutes'],
  medium: ['medium', 'all between'],
  largest: ['largest', 'at least an eighth of the pool'],
  unallocated: ['unallocated', 'without a contract'],
  requeued: ['requeued', 'from a preemption to running again'],
};

// The part of the values that are at most `value`.
function partBelow(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1; else high = middle;
  }
  return values.length ? low / values.length : 0;
}

function atRank(values, part) {
  return values.length ? values[Math.min(values.length - 1, Math.max(0, Math.ceil(values.length * part) - 1))] : null;
}

function distributionChart(all, of, className, { least, ticks, text }) {
  const ranks = all.map((one) => one[of][className]);
  const greatest = Math.max(...ranks.map(({ values }) => values.at(-1) ?? least));
  const to = Math.max(greatest, ticks[2][0]);
  const line = (values) => [[least, partBelow(values, least) * 100],
    ...values.flatMap((value, i) => (value > least ? [[value, (i / values.length) * 100], [value, ((i + 1) / values.length) * 100]] : [])), [to, 100]];
  const never = all.map(({ policy }, i) => (ranks[i].never ? `${policy} ${figure(ranks[i].never)}` : null)).filter(Boolean);
  const heads = ['half', 'nine of ten', '99 of 100'];
  const shares = [0.5, 0.9, 0.99];
  return chart({
    label: `${CLASS_TEXTS[className].join(': ')}. Nine of ten within: ${all.map(({ policy }, i) => `${policy} ${ranks[i].count ? text(atRank(ranks[i].values, 0.9)) : 'none'}`).join(', ')}`,
    caption: [make('b', {}, CLASS_TEXTS[className][0]), ` ${CLASS_TEXTS[className][1]}`],
    note: never.length ? `Never started, counted with their wait so far: ${never.join(', ')}` : null,
    height: 190,
    x: { from: least, to, log: true, ticks: () => ticks },
    y: { most: 100, ticks: [0, 50, 90, 100], text: (value) => `${value}%` },
    marks: ranks.flatMap(({ values }, i) => (values.length ? [{ className: `policy policy${i % 6}`, line: line(values) }] : [])),
    readout: (x) => [`within ${text(x)}`, ...all.map(({ policy }, i) => `${policy} ${ranks[i].count ? percent(partBelow(ranks[i].values, x)) : '–'}`)],
    rows: () => [['policy', 'how many', ...heads], ...all.map(({ policy }, i) =>
      [policy, figure(ranks[i].count), ...shares.map((part) => (ranks[i].count ? text(atRank(ranks[i].values, part)) : '–'))])],
  });
}

function distributions(all) {
  byId('policy-legend').append(...all.map(({ policy }, i) => lineKey(i, policy)));
  const waits = { least: 1, ticks: WAIT_TICKS, text: shortSpan };
  const slowdowns = { least: 1, ticks: FACTOR_TICKS, text: (value) => `${figure(value)}×` };
  byId('waits').append(...Object.keys(CLASS_TEXTS).map((name) => distributionChart(all, 'waits', name, waits)));
  byId('slowdowns').append(...['debug', 'medium', 'largest'].map((name) => distributionChart(all, 'slowdowns', name, slowdowns)));
}
