// The Gantts: what a reader does with a mouse, a finger and a keyboard, against the event log.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PHONE, card, launch, open, view } from './browser.mjs';
import { report } from './reports.mjs';

let browser, drain, log;

before(async () => {
  browser = await launch();
  drain = report('drain', 'scenarios/drain.toml', '--set', 'measure=6d');
  log = drain.log();
});

after(() => browser.close());

// `202:34:07 (day 8, 10:34)` as milliseconds.
function ms(text) {
  const [hours, minutes, seconds = 0] = text.match(/^[\d:]+/)[0].split(':').map(Number);
  return ((hours * 60 + minutes) * 60 + seconds) * 1000;
}

// The lines of the log about an attempt.
function logged(head) {
  const [, workload, attempt] = head.match(/^(\S+), attempt (\d+)$/);
  const lines = log.filter((line) => line.workload === workload && (line.attempt === Number(attempt) || line.event === 'submitted'));
  return (event) => lines.find((line) => line.event === event);
}

// A card says what the log says.
function assertCard({ head, pairs }) {
  const line = logged(head);
  const text = Object.fromEntries(pairs.slice().reverse());
  const because = pairs.filter(([term]) => term.endsWith('because')).map(([, why]) => why);
  const started = line('started'), submitted = line('submitted');
  assert.equal(text.budget, submitted.budget);
  assert.equal(text.user, submitted.user);
  assert.ok(text['asks for'].startsWith(`${submitted.members} × ${submitted.gpus_per_member} GPU`), text['asks for']);
  assert.equal(ms(text.started), Math.floor(started.t_ms / 1000) * 1000);
  assert.equal(because[0], started.why);
  const preempting = line('preempting'), ended = line('ended');
  if (ended?.outcome === 'preempted' && preempting) assert.equal(because[1], preempting.why);
  if (ended) assert.equal(ms(text.ended), Math.floor(ended.t_ms / 1000) * 1000);
  return { preempted: ended?.outcome === 'preempted' };
}

async function opened(options) {
  const report = await open(browser, drain.file, options);
  const canvas = report.page.locator('canvas').first();
  await canvas.scrollIntoViewIfNeeded();
  return { ...report, canvas, box: await canvas.boundingBox() };
}

test('under the pointer a bar tells its workload and the reasons of the log', async () => {
  const { page, canvas, box, seen, close } = await opened();
  const tip = page.locator('.tip').first();
  let told = 0;
  for (let i = 1; i < 12; i++) {
    await canvas.hover({ position: { x: 60 + ((box.width - 80) * i) / 12, y: 20 + (i * 37) % (box.height - 60) } });
    const found = await card(tip);
    if (!found.head.includes('attempt')) continue;
    assertCard(found);
    told++;
  }
  assert.ok(told > 5, `${told} bars found`);
  assert.deepEqual(seen, []);
  await close();
});

test('the keyboard goes from bar to bar, and meets preemptions with their reasons', async () => {
  const { page, canvas, close } = await opened();
  await canvas.focus();
  await page.keyboard.press('Enter');
  let preempted = 0;
  const heads = new Set();
  for (let i = 0; i < 60 && preempted < 3; i++) {
    const found = await card(page.locator('#lease'));
    heads.add(found.head);
    preempted += assertCard(found).preempted;
    await page.keyboard.press('.');
  }
  assert.ok(heads.size > 2 && preempted > 0, `${heads.size} bars, ${preempted} of them preempted`);
  await close();
});

test('arrows move, plus and minus zoom, page keys zoom the rows, Home shows all; both pictures together', async () => {
  const { page, canvas, close } = await opened();
  await canvas.focus();
  await page.keyboard.press('Home');
  const all = await view(page);
  await page.keyboard.press('+');
  const zoomed = await view(page);
  assert.ok(Math.abs((zoomed.to - zoomed.from) * 2 - (all.to - all.from)) < 1);
  await page.keyboard.press('ArrowRight');
  assert.ok((await view(page)).from > zoomed.from);
  await page.keyboard.press('PageUp');
  const rows = await view(page);
  assert.ok(rows.bottom - rows.top < zoomed.bottom - zoomed.top);
  await page.keyboard.press('ArrowDown');
  assert.ok((await view(page)).top > rows.top);
  const views = await page.locator('canvas').evaluateAll((all) => all.map((one) => one.dataset.view));
  assert.equal(views.length, 2);
  assert.equal(views[0], views[1]);
  await page.keyboard.press('Home');
  assert.deepEqual(await view(page), all);
  await close();
});

test('the wheel zooms once the picture was pressed, and scrolls the page before', async () => {
  const { page, canvas, box, close } = await opened();
  const before = await view(page);
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  await page.mouse.wheel(0, -300);
  assert.deepEqual(await view(page), before);
  await canvas.scrollIntoViewIfNeeded();
  const now = await canvas.boundingBox();
  await page.mouse.click(now.x + now.width / 2, now.y + 40);
  await page.mouse.wheel(0, -300);
  const after = await view(page);
  assert.ok(after.to - after.from < before.to - before.from);
  // Dragging moves it.
  await page.mouse.down();
  await page.mouse.move(now.x + now.width / 2 - 100, now.y + 40, { steps: 4 });
  await page.mouse.up();
  assert.ok((await view(page)).from > after.from);
  await close();
});

test('zoomed in far enough, each GPU has a row of its own', async () => {
  const { page, canvas, close } = await opened();
  await canvas.focus();
  for (let i = 0; i < 8; i++) await page.keyboard.press('PageUp');
  for (let i = 0; i < 3; i++) await page.keyboard.press('+');
  const { top, bottom } = await view(page);
  assert.equal(bottom - top, 1);
  // Nodes stand in order here, so a row's number is its node's, and a GPU is an eighth of it.
  const { height } = await canvas.boundingBox();
  const told = new Set();
  for (let i = 0; i < 16; i++) {
    const y = ((i + 0.5) / 16) * (height - 20);
    const row = top + y / (height - 20), gpu = Math.floor((row % 1) * 8);
    await canvas.hover({ position: { x: 200, y } });
    const found = await card(page.locator('.tip').first());
    if (!found.head.includes('attempt')) continue;
    assert.ok(logged(found.head)('started').placement[`n${Math.floor(row)}`].includes(gpu), `${found.head} on GPU ${gpu} of n${Math.floor(row)}`);
    told.add(gpu);
  }
  assert.ok(told.size > 4, `${told.size} GPUs had bars`);
  await close();
});

// How many pixels of a canvas have a colour of the style sheet.
function pixels(page, name) {
  return page.locator('canvas').first().evaluate((canvas, name) => {
    const hex = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += data[i] === r && data[i + 1] === g && data[i + 2] === b;
    return count;
  }, name);
}

test('one team can be highlighted: the rest is grey, near and far', async () => {
  const { page, canvas, close } = await opened();
  assert.equal(await pixels(page, 'other'), 0);
  assert.ok((await pixels(page, 'protected')) > 0);
  const teams = page.locator('#gantt-controls select').last();
  const team = (await teams.locator('option').allTextContents()).at(-1);
  for (const key of ['Home', '+', '+', '+', '+', '+']) {
    await teams.selectOption('');
    await canvas.focus();
    await page.keyboard.press(key);
    await view(page);
    const own = await pixels(page, 'protected');
    await teams.selectOption(team);
    await view(page);
    assert.ok((await pixels(page, 'other')) > 0, key);
    assert.ok((await pixels(page, 'protected')) < own, key);
  }
  await close();
});

test('the policies beside each other can be chosen', async () => {
  const { page, seen, close } = await opened();
  await page.locator('#gantt-controls select').nth(1).selectOption({ label: 'partition' });
  await page.waitForFunction(() => document.querySelectorAll('.gantt b')[1].textContent === 'partition');
  assert.deepEqual(seen, []);
  await close();
});

test('what is in view can be read as a table', async () => {
  const { page, close } = await opened();
  const table = page.locator('.gantt details').first();
  await table.locator('summary').click();
  await table.locator('tbody tr').first().waitFor();
  const heads = await table.locator('tbody th').allTextContents();
  const whys = await table.locator('tbody td:nth-of-type(4)').allTextContents();
  assert.ok(heads.length > 10);
  heads.forEach((head, i) => assert.equal(whys[i], logged(head)('started').why));
  await close();
});

test('on a phone a touch tells, and two fingers zoom', async () => {
  const { page, canvas, seen, close } = await opened({ size: PHONE, touch: true });
  const box = await canvas.boundingBox();
  await page.touchscreen.tap(box.x + box.width / 2, box.y + 30);
  const tip = page.locator('.tip').first();
  await tip.waitFor({ state: 'visible' });
  const { x, width } = await tip.boundingBox();
  assert.ok(x >= 0 && x + width <= PHONE.width, `from ${x} to ${x + width}`);
  const before = await view(page);
  const session = await page.context().newCDPSession(page);
  const fingers = (apart) => [-1, 1].map((side, id) => ({ x: box.x + box.width / 2 + (side * apart) / 2, y: box.y + 40, id }));
  await session.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: fingers(60) });
  for (const apart of [90, 130, 180]) await session.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: fingers(apart) });
  await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  const after = await view(page);
  assert.ok(after.to - after.from < before.to - before.from);
  assert.deepEqual(seen, []);
  await close();
});
