// The table and the series as soon as they are there; the Gantt when the rest of the page has come.

async function start() {
  theme();
  table();
  if (facts.seeds > 1) {
    byId('seeds').textContent = `The table is made of ${facts.seeds} seeds. The pictures show the first of them, seed ${facts.seed}.`;
    byId('seeds').hidden = false;
  }
  const all = [];
  for (let index = 0; index < facts.policies.length; index++) all.push(await figuresOf(index));
  if (all[0].budgets.some((budget) => budget.leaf && budget.owed.length)) delivery(all);
  requestAnimationFrame(() => performance.mark('first picture'));
  distributions(all);
  if (document.readyState === 'loading') await new Promise((done) => addEventListener('DOMContentLoaded', done));
  await new Gantt().start();
}

start();
