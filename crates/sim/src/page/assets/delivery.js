// What budgets were owed and got, over time.

const MODES = [['rate', 'GPUs'], ['cumulative', 'Cumulative'], ['arrears', 'Arrears']];

// Means of `per` hours each, so that a month is not a thicket.
function binned(values, per) {
  const bins = [];
  for (let i = 0; i < values.length; i += per) {
    const part = values.slice(i, i + per);
    bins.push(part.reduce((sum, value) => sum + value, 0) / part.length);
  }
  return bins;
}

function cumulated(values) {
  let sum = 0;
  return Float64Array.from(values, (value) => (sum += value));
}

// The sum over the leaves, each with its own shortfall: what one got beyond does not make up for another.
function whole(budgets) {
  const leaves = budgets.filter((budget) => budget.leaf);
  const sum = (of) => Float64Array.from(leaves[0].owed, (_, hour) => leaves.reduce((total, leaf) => total + leaf[of][hour], 0));
  return {
    path: 'all teams, each by itself',
    leaves,
    owed: sum('owed'),
    delivered: sum('delivered'),
    arrears: Float64Array.from(leaves[0].owed, (_, hour) => Math.max(...leaves.map((leaf) => leaf.arrears[hour]))),
  };
}

// The bands of one budget: what it got of what it was owed, what it got beyond, and what is missing.
function bandsOf(budget, mode, per) {
  const times = (bins) => bins.map((_, i) => facts.from + i * per * 3600);
  if (mode === 'arrears') {
    const bins = binned(budget.arrears.map((hours) => Math.max(hours, 0)), per);
    const at = times(bins);
    return { most: Math.max(...bins), marks: [{ className: 'missing', band: bins.map((hours, i) => [at[i], 0, hours]) }] };
  }
  const series = (values) => binned(mode === 'cumulative' ? cumulated(values) : values, per);
  const parts = (budget.leaves ?? [budget]).map((leaf) => ({ owed: series(leaf.owed), delivered: series(leaf.delivered) }));
  const sum = (of) => parts[0].owed.map((_, i) => parts.reduce((total, { owed, delivered }) => total + Math.max(of(owed[i], Math.max(delivered[i], 0)), 0), 0));
  const met = sum(Math.min), missing = sum((owed, got) => owed - got), beyond = sum((owed, got) => got - owed);
  const at = times(met);
  const owed = met.map((value, i) => value + missing[i]);
  return {
    most: Math.max(...owed.map((value, i) => value + beyond[i])),
    marks: [
      { className: 'met', band: met.map((value, i) => [at[i], 0, value]) },
      { className: 'beyond', band: owed.map((value, i) => [at[i], value, value + beyond[i]]) },
      { className: 'missing', band: met.map((value, i) => [at[i], value, owed[i]]) },
    ],
  };
}

function partOf(budget) {
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const owed = sum(budget.owed);
  return owed > 0 ? Math.min(1, sum(budget.delivered) / owed) : null;
}

function budgetChart(budget, mode, height, most, part) {
  const hours = budget.owed.length;
  const per = Math.max(1, Math.round(hours / 120));
  const { marks, most: own } = bandsOf(budget, mode, per);
  const to = facts.from + hours * 3600;
  const unit = mode === 'rate' ? 'GPUs' : mode === 'cumulative' ? 'GPU-hours' : 'h of its share';
  const { top, ticks } = axisTo(most ?? own, height > 160 ? 4 : 2);
  const sums = { owed: cumulated(budget.owed), delivered: cumulated(budget.delivered) };
  const at = (hour) => mode === 'arrears' ? [`arrears ${figure(Math.max(budget.arrears[hour], 0))} h`]
    : ['owed', 'delivered'].map((of) => `${of} ${figure((mode === 'cumulative' ? sums : budget)[of][hour])} ${unit}`);
  return chart({
    label: `${budget.path}: ${mode === 'arrears' ? 'arrears' : 'owed and delivered'} over time${part === null ? '' : `, ${percent(part)} of what was owed was delivered`}`,
    caption: [make('b', {}, budget.path), part === null ? '' : ` ${percent(part)}`],
    height,
    x: { from: facts.from, to, ticks: (pixels) => timeTicks(facts.from, to, pixels) },
    y: { most: top, ticks, text: (value) => (value >= 10000 ? `${value / 1000}k` : String(value)) },
    marks,
    readout: (x) => {
      const hour = Math.min(Math.max(Math.floor((x - facts.from) / 3600), 0), hours - 1);
      return [day(facts.from + hour * 3600), ...at(hour)];
    },
    rows: () => daily(budget),
  });
}

// The days of a budget as a table.
function daily(budget) {
  const rows = [['day', 'owed, GPU-hours', 'delivered, GPU-hours', 'arrears at its end, h']];
  for (let hour = 0; hour < budget.owed.length; hour += 24) {
    const sum = (values) => values.slice(hour, hour + 24).reduce((total, value) => total + value, 0);
    const last = Math.min(hour + 24, budget.owed.length) - 1;
    rows.push([day(facts.from + hour * 3600), figure(sum(budget.owed)), figure(sum(budget.delivered)), figure(Math.max(budget.arrears[last], 0))]);
  }
  return rows;
}

function delivery(all) {
  const chosen = { policy: all[0].policy, mode: 'rate' };
  const draw = () => {
    const { budgets } = all.find((one) => one.policy === chosen.policy);
    const arrears = chosen.mode === 'arrears';
    const together = whole(budgets);
    if (arrears) together.path = 'the team furthest behind at the time';
    // Arrears are comparable between teams, so they have one scale; GPUs are not, as shares differ.
    const most = arrears ? Math.max(...budgets.filter((b) => b.leaf).map((b) => bandsOf(b, 'arrears', 6).most), 1) : null;
    byId('delivery-legend').replaceChildren(...(arrears ? [key('missing', 'arrears, in hours of its own share')] : [
      key('met', 'delivered, of what was owed'), key('beyond', 'delivered beyond that'), key('missing', 'owed and not delivered'),
    ]));
    const picture = (budget, height) => {
      const figure = budgetChart(budget, chosen.mode, height, budget.leaf ? most : null, partOf(budget));
      figure.classList.toggle('inner', !budget.leaf);
      return figure;
    };
    const isTop = (budget) => !budget.leaf && !budget.path.includes('/');
    byId('delivery-whole').replaceChildren(budgetChart(together, chosen.mode, 200, most, arrears ? null : wholePart(budgets)), ...budgets.filter(isTop).map((budget) => picture(budget, 200)));
    byId('delivery-teams').replaceChildren(...budgets.filter((budget) => !isTop(budget)).map((budget) => picture(budget, 130)));
  };
  const modes = segments(make('fieldset', { class: 'choice' }, make('legend', { class: 'unseen' }, 'What to show')), 'mode', MODES, 'rate', (mode) => {
    chosen.mode = mode;
    draw();
  });
  byId('delivery-controls').append(choice('Policy', all.map(({ policy }) => [policy, policy]), chosen.policy, (policy) => {
    chosen.policy = policy;
    draw();
  }), modes);
  draw();
  byId('arrears').append(arrearsChart(all));
}

// What was delivered of what was owed, leaf by leaf, as in the table.
function wholePart(budgets) {
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const leaves = budgets.filter((budget) => budget.leaf).map((leaf) => [sum(leaf.owed), sum(leaf.delivered)]);
  const owed = sum(leaves.map(([of]) => of));
  return owed > 0 ? sum(leaves.map(([of, got]) => Math.max(0, Math.min(of, got)))) / owed : null;
}

// All policies in one picture.
function arrearsChart(all) {
  const lines = all.map(({ budgets }) => whole(budgets).arrears);
  const hours = lines[0].length;
  const most = Math.max(1, ...lines.map((line) => Math.max(...line)));
  const { top, ticks } = axisTo(most, 4);
  const to = facts.from + hours * 3600;
  return chart({
    label: `Arrears over time of the team furthest behind. At the end: ${all.map(({ policy }, i) => `${policy} ${figure(lines[i].at(-1))} h`).join(', ')}`,
    caption: all.map(({ policy }, i) => lineKey(i, policy)),
    height: 220,
    x: { from: facts.from, to, ticks: (pixels) => timeTicks(facts.from, to, pixels) },
    y: { most: top, ticks, text: (value) => `${value}h` },
    marks: lines.map((line, i) => ({ className: `policy policy${i % 6}`, line: Array.from(line, (hours, at) => [facts.from + (at + 1) * 3600, hours]) })),
    readout: (x) => {
      const hour = Math.min(Math.max(Math.floor((x - facts.from) / 3600), 0), hours - 1);
      return [day(facts.from + hour * 3600), ...all.map(({ policy }, i) => `${policy} ${figure(lines[i][hour])} h`)];
    },
    rows: () => [['day', ...all.map(({ policy }) => policy)], ...Array.from({ length: Math.ceil(hours / 24) }, (_, i) => {
      const last = Math.min(i * 24 + 23, hours - 1);
      return [day(facts.from + i * 86400), ...lines.map((line) => `${figure(line[last])} h`)];
    })],
  });
}
