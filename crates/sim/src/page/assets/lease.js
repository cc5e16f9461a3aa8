// All about one lease, in words.

function workloadName(number) {
  return facts.workloads[number] ?? `w${number}`;
}

// A heading and pairs of a term and its text.
function aboutLease(bars, lease) {
  const { workloads, policy } = bars;
  const at = place(bars, lease);
  const members = workloads.members[at], each = workloads.gpus_per_member[at];
  const kind = workloads.kind[at], contract = workloads.contract[at];
  const start = bars.start[lease], running = bars.running[lease], end = bars.end[lease], protectedUntil = bars.protectedUntil[lease];
  const user = workloads.user[at];
  const why = { start: sentence(policy, bars.whyStart, lease), end: sentence(policy, bars.whyEnd, lease) };
  const outcome = OUTCOMES[bars.outcome[lease]];
  return {
    head: `${workloadName(bars.workload[lease])}, attempt ${bars.attempt[lease]}`,
    pairs: [
      ['budget', facts.budgets[workloads.budget[at]]],
      ['user', facts.users[user] ?? `u${user}`],
      ['asks for', `${members} × ${each} GPU${each === 1 ? '' : 's'} (${CLASSES[Math.floor(kind / 3)]}), priority ${workloads.priority[at]}`],
      ['contract', contract ? `protected for ${span(contract)}; ${ON_PREEMPT[kind % 3]} when preempted` : `none: unallocated; ${ON_PREEMPT[kind % 3]} when preempted`],
      ['started', `${moment(start)}${running > start && running < NEVER ? `, running ${span(running - start)} later` : ''}`],
      ['because', why.start],
      bars.promoted[lease] < NEVER ? ['got its contract', `${moment(bars.promoted[lease])}, where it ran`] : null,
      protectedUntil < NEVER ? ['protected until', `${moment(protectedUntil)}${end > protectedUntil ? `, and went on for ${span(end - protectedUntil)}` : ''}`] : null,
      ['ended', bars.outcome[lease] ? `${moment(end)}, ${outcome}, after ${span(end - start)}` : outcome],
      why.end ? [bars.outcome[lease] ? 'because' : 'is to end, because', why.end] : null,
    ].filter(Boolean),
  };
}

function leaseCard({ head, pairs }, ...more) {
  return [make('strong', {}, head), make('dl', {}, pairs.flatMap(([term, text]) => [make('dt', {}, term), make('dd', {}, text)])), ...more];
}

// A node, with its pool where there are several.
function nodeName({ name, pool }) {
  return facts.pools.length > 1 ? `${name} of ${facts.pools[pool]}` : name;
}

// What is under the pointer where no lease is.
function aboutNothing(bars, row, at) {
  const node = bars.nodes[row];
  const outage = bars.outages.find((one) => one.row === row && one.from <= at && at < one.to);
  return { head: nodeName(node), pairs: [['then', outage ? `${NODE_STATES[outage.state]}${outage.reason ? `: ${outage.reason}` : ''}` : 'idle, or held for a workload that starts soon']] };
}
