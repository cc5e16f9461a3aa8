// How large the page is, how soon it shows something, and how smooth the Gantt is: `node bench.mjs`, after `cargo build --release`.
// It prints the table of docs/benchmarks.md.

import { statSync } from 'node:fs';
import { LAPTOP, launch, open } from './browser.mjs';
import { report } from './reports.mjs';

const SETS = [
  ['`lab`, all policies', 'lab', []],
  ['`lab` for 60 days, `budget` and `easy`', 'lab-60d', ['--set', 'measure=60d', '--policy', 'budget,easy']],
];

// How long each frame's own work takes; the page's code is as it is.
const TIMED = `
  window.frames_ms = [];
  const request = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (draw) => request((at) => {
    const began = performance.now();
    draw(at);
    window.frames_ms.push(performance.now() - began);
  });`;

const middle = (values, part) => values.sort((a, b) => a - b)[Math.floor((values.length - 1) * part)];

// Presses a key again and again, a frame each.
async function frames(page, key, times) {
  await page.evaluate(() => (window.frames_ms.length = 0));
  for (let i = 0; i < times; i++) {
    await page.keyboard.press(key);
    await page.evaluate(() => new Promise((done) => setTimeout(done, 20)));
  }
  const found = await page.evaluate(() => window.frames_ms);
  return `${middle(found, 0.5).toFixed(0)} (${middle(found, 0.95).toFixed(0)})`;
}

async function measured(browser, [name, file, options]) {
  const made = report(file, 'scenarios/lab.toml', ...options);
  const first = [], whole = [];
  for (let i = 0; i < 3; i++) {
    const began = performance.now();
    const { page, close } = await open(browser, made.file, { size: LAPTOP });
    whole.push(performance.now() - began);
    first.push(await page.evaluate(() => performance.getEntriesByName('first picture')[0].startTime));
    await close();
  }
  const { page, close } = await open(browser, made.file, { size: LAPTOP, before: TIMED });
  const bars = (await page.locator('.gantt figcaption').allTextContents()).join('; ');
  await page.locator('canvas').first().focus();
  await page.keyboard.press('Home');
  const far = await frames(page, '+', 1).then(() => page.keyboard.press('Home')).then(() => frames(page, 'Home', 30));
  for (let i = 0; i < 4; i++) await page.keyboard.press('+');
  const near = await frames(page, 'ArrowRight', 30);
  const zoom = await frames(page, '+', 6);
  await close();
  const size = (statSync(made.file).size / 1e6).toFixed(1);
  return `| ${name} | ${bars} | ${size} MB | ${middle(first, 0.5).toFixed(0)} | ${middle(whole, 0.5).toFixed(0)} | ${far} | ${near} | ${zoom} |`;
}

const browser = await launch();
console.log('| report | runs and bars | size | first picture, ms | all there, ms | frame, all in view | frame, a sixteenth of the time | frame, zooming in on that |');
console.log('|---|---|---|---|---|---|---|---|');
for (const set of SETS) console.log(await measured(browser, set));
await browser.close();
