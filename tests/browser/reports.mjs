// Reports made by the program itself.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const PROGRAM = join(resolve(ROOT, process.env.CARGO_TARGET_DIR ?? 'target'), 'release/stipend');
const folder = mkdtempSync(join(tmpdir(), 'stipend-report-'));

// Runs a scenario; what the terminal says, the page, and the event log of `budget`.
export function report(name, scenario, ...options) {
  const file = join(folder, `${name}.html`), events = join(folder, `${name}.jsonl`);
  const args = ['sim', 'run', join(ROOT, scenario), '--report', file, '--events', events, ...options];
  const table = execFileSync(PROGRAM, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  return { file, table, log: () => readFileSync(events, 'utf8').trim().split('\n').map((line) => JSON.parse(line)) };
}
