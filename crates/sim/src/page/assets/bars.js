// The leases of one policy, in typed arrays, and their pieces by node: what the Gantt draws.

// The states of a GPU, by number: how it is drawn, and what it is called.
const STATES = [
  { name: 'starting', text: 'starting' },
  { name: 'protected', text: 'under contract: protected' },
  { name: 'past', text: 'past its contract: no longer protected' },
  { name: 'unallocated', text: 'unallocated: never protected' },
  { name: 'other', text: 'other teams' },
];
const STARTING = 0, PROTECTED = 1, PAST = 2, UNALLOCATED = 3, OTHER = 4;
const NEVER = 2 ** 31 - 1;

async function ganttOf(index) {
  const policy = facts.policies[index];
  const column = await block(`gantt${index}`);
  const bars = { policy, index, ...leasesOf(policy, column), ...reasonsOf(column) };
  bars.workloads = workloadsOf(column);
  bars.nodes = orderedNodes(policy.nodes);
  bars.outages = outagesOf(policy, column, bars.nodes);
  return Object.assign(bars, piecesOf(bars, column));
}

function leasesOf(policy, column) {
  const count = policy.leases;
  const of = Object.fromEntries(['workload', 'attempt', 'start', 'running', 'promoted', 'protectedUntil', 'end'].map((name) => [name, new Int32Array(count)]));
  const outcome = new Uint8Array(count), unallocated = new Uint8Array(count);
  const read = Object.fromEntries(['workload', 'attempt', 'start', 'running', 'promoted', 'protected', 'end', 'state'].map((name) => [name, column(name)]));
  for (let i = 0; i < count; i++) {
    of.workload[i] = read.workload.step();
    of.attempt[i] = read.attempt.number();
    const start = (of.start[i] = read.start.step());
    const later = (value) => (value ? start + value - 1 : NEVER);
    of.running[i] = later(read.running.number());
    of.promoted[i] = later(read.promoted.number());
    of.protectedUntil[i] = later(read.protected.number());
    of.end[i] = Math.min(later(read.end.number()), policy.end);
    const state = read.state.number();
    outcome[i] = state >> 1;
    unallocated[i] = state & 1;
  }
  return { count, ...of, outcome, unallocated };
}

// Where each lease's reasons are; the sentence is put together when somebody asks.
function reasonsOf(column) {
  const of = (name) => {
    return { templates: Uint32Array.from(column(name).all('number')), numbers: column(`${name}_numbers`).all('number'), first: null };
  };
  return { whyStart: of('why_start'), whyEnd: of('why_end') };
}

const HOLE = '\u0001';

// The core's own sentence: a template with its numbers put back.
function sentence(policy, why, lease) {
  const templates = policy.templates;
  policy.holes ??= templates.map((template) => template.split(HOLE).length - 1);
  if (!why.first) {
    why.first = new Uint32Array(why.templates.length);
    for (let i = 0, at = 0; i < why.templates.length; i++) {
      why.first[i] = at;
      if (why.templates[i]) at += policy.holes[why.templates[i] - 1];
    }
  }
  if (!why.templates[lease]) return '';
  let at = why.first[lease];
  return templates[why.templates[lease] - 1].split(HOLE).reduce((text, part) => {
    const number = why.numbers[at++];
    return `${text}${'0'.repeat(number % 4)}${Math.floor(number / 4)}${part}`;
  });
}

function workloadsOf(column) {
  const all = (name, how) => column(name).all(how);
  const ids = all('id', 'step');
  const fields = { budget: 'number', user: 'number', members: 'number', gpus_per_member: 'number', contract: 'number', priority: 'signed', kind: 'number' };
  const columns = Object.fromEntries(Object.entries(fields).map(([name, how]) => [name, all(name, how)]));
  return { place: new Map(ids.map((id, place) => [id, place])), ...columns };
}

// By pool, express nodes last in each, then by number.
function orderedNodes(nodes) {
  const ordered = [...nodes].sort((a, b) => a.pool - b.pool || a.express - b.express || a.id - b.id);
  ordered.row = new Map(ordered.map((node, row) => [node.id, row]));
  return ordered;
}

function outagesOf(policy, column, nodes) {
  const read = ['outage_node', 'outage_from', 'outage_length', 'outage_state'].map(column);
  return policy.outage_reasons.map((reason) => {
    const [node, from, length, state] = [read[0].number(), read[1].step(), read[2].number(), read[3].number()];
    return { row: nodes.row.get(node), from, to: length ? from + length - 1 : policy.end, state, reason };
  });
}

// A piece is a run of neighbouring GPUs of one lease on one node. `first[row]` to `first[row + 1]` are a row's pieces, by start; `reach`
// is the latest end of those up to there, so that the first piece in view is found by halving.
function piecesOf(bars, column) {
  const found = readPieces(bars, column);
  const rows = bars.nodes.length;
  const first = new Uint32Array(rows + 1);
  for (const row of found.rows) first[row + 1]++;
  for (let row = 0; row < rows; row++) first[row + 1] += first[row];
  const at = first.slice(0, rows);
  const count = found.rows.length;
  const lease = new Uint32Array(count), low = new Uint8Array(count), high = new Uint8Array(count), reach = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    const place = at[found.rows[i]]++;
    lease[place] = found.leases[i];
    low[place] = found.lows[i];
    high[place] = found.highs[i];
  }
  for (let row = 0; row < rows; row++) {
    let latest = 0;
    for (let i = first[row]; i < first[row + 1]; i++) reach[i] = latest = Math.max(latest, bars.end[lease[i]]);
  }
  return { first, lease, low, high, reach, pieces: count };
}

function readPieces(bars, column) {
  const slots = column('slots'), nodes = column('node'), gpus = column('gpus');
  const found = { rows: [], leases: [], lows: [], highs: [] };
  const add = (row, lease, low, high) => {
    found.rows.push(row);
    found.leases.push(lease);
    found.lows.push(low);
    found.highs.push(high);
  };
  for (let lease = 0; lease < bars.count; lease++) {
    let node = 0;
    for (let left = slots.number(); left > 0; left--, node++) {
      node += nodes.signed();
      const row = bars.nodes.row.get(node);
      const runs = gpus.number();
      if (runs === 0) add(row, lease, 0, bars.nodes[row].gpus);
      for (let run = 0, low = 0; run < runs; run++) {
        low += gpus.number();
        const high = low + gpus.number();
        add(row, lease, low, high);
        low = high;
      }
    }
  }
  return found;
}

// The first piece of a row that may reach beyond `from`.
function firstPiece(bars, row, from) {
  let low = bars.first[row], high = bars.first[row + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bars.reach[middle] > from) high = middle; else low = middle + 1;
  }
  return low;
}

// Calls `each(state, from, to)` for the states that a lease went through.
function statesOf(bars, lease, each) {
  const start = bars.start[lease], end = bars.end[lease];
  const running = Math.min(bars.running[lease], end);
  if (start < running) each(STARTING, start, running);
  if (running >= end) return;
  // Until it is promoted, what starts unallocated is so.
  const charged = bars.unallocated[lease] ? Math.max(running, Math.min(bars.promoted[lease], end)) : running;
  if (running < charged) each(UNALLOCATED, running, charged);
  if (charged >= end) return;
  const protectedUntil = Math.min(bars.protectedUntil[lease], end);
  if (charged < protectedUntil) each(PROTECTED, charged, protectedUntil);
  if (protectedUntil < end) each(PAST, Math.max(protectedUntil, charged), end);
}

function place(bars, lease) {
  return bars.workloads.place.get(bars.workload[lease]);
}

// Which leases are of the highlighted team; `null` where none is.
function highlighted(bars, path) {
  if (!path) return null;
  const inside = facts.budgets.map((budget) => budget === path || budget.startsWith(`${path}/`));
  return Uint8Array.from({ length: bars.count }, (_, lease) => inside[bars.workloads.budget[place(bars, lease)]]);
}

// The lease at a point of a row, `gpu` counted from its top; the later one where two meet.
function leaseAt(bars, row, gpu, at) {
  if (row < 0 || row >= bars.nodes.length) return null;
  let found = null;
  for (let i = firstPiece(bars, row, at); i < bars.first[row + 1]; i++) {
    const lease = bars.lease[i];
    if (bars.start[lease] > at) break;
    if (at < bars.end[lease] && bars.low[i] <= gpu && gpu < bars.high[i]) found = lease;
  }
  return found;
}
