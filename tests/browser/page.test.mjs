// The page as a whole: it opens from a file, asks for nothing, fits, and says what the terminal says.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { LAPTOP, PHONE, launch, open } from './browser.mjs';
import { report } from './reports.mjs';

let browser, drain, seeds;

before(async () => {
  browser = await launch();
  drain = report('drain', 'scenarios/drain.toml', '--set', 'measure=6d');
  seeds = report('seeds', 'scenarios/tiny.toml', '--seed', '1,2', '--policy', 'easy');
});

after(() => browser.close());

for (const [name, size, touch] of [['a laptop', LAPTOP, false], ['a phone', PHONE, true]]) {
  for (const scheme of ['light', 'dark']) {
    test(`on ${name}, ${scheme}: no errors, no requests, nothing wider than the screen`, async () => {
      const { page, seen, close } = await open(browser, drain.file, { size, scheme, touch });
      await page.locator('details summary').first().click();
      for (const mode of ['cumulative', 'arrears']) await page.locator(`input[value=${mode}]`).check({ force: true });
      const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(widths[0] <= widths[1], `the page is ${widths[0]} wide on a screen of ${widths[1]}`);
      assert.deepEqual(seen, []);
      await close();
    });
  }
}

test('the table has the figures of the terminal', async () => {
  const { page, close } = await open(browser, drain.file);
  const rows = await page.locator('.figures tbody tr:not(.about)').evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.replaceAll('\u00a0', ' ').trim())));
  // On the terminal the policies that do not fit beside each other stand in a second block, the first one again before them.
  const blocks = drain.table.split(/\n─+\n/).slice(1).map((block) => block.split('\n\n')[0].split('\n'));
  const shown = (cells) => [cells.slice(0, 5), [...cells.slice(0, 2), ...cells.slice(5)]];
  const words = (text) => text.split(/\s+/).filter(Boolean).join(' ');
  assert.ok(rows.length > 20);
  assert.equal(blocks.length, 2);
  rows.forEach((cells, i) => {
    shown(cells).forEach((part, block) => assert.equal(words(part.join(' ')), words(blocks[block][i])));
  });
  const sentences = (await page.locator('.sentences li').allTextContents()).map((text) => text.replaceAll('\u00a0', ' '));
  const flat = drain.table.split(/\s+/).join(' ');
  assert.ok(sentences.length >= 4);
  for (const sentence of sentences) assert.ok(flat.includes(sentence), sentence);
  await close();
});

test('each row explains itself', async () => {
  const { page, close } = await open(browser, drain.file);
  const rows = page.locator('button.row');
  for (let i = 0; i < (await rows.count()); i++) {
    assert.ok((await rows.nth(i).getAttribute('title')).length > 10);
  }
  const row = rows.filter({ hasText: 'owed delivered' });
  await row.focus();
  await page.keyboard.press('Enter');
  assert.equal(await row.getAttribute('aria-expanded'), 'true');
  assert.match(await page.locator('.about:not([hidden])').textContent(), /owed its share/);
  await close();
});

test('with several seeds the page says which one it draws', async () => {
  const { page, seen, close } = await open(browser, seeds.file);
  assert.match(await page.locator('#seeds').textContent(), /2 seeds.*seed 1/);
  assert.equal(await page.locator('canvas').count(), 1);
  assert.deepEqual(seen, []);
  await close();
});

test('pictures have names, tables in their place, and follow the policy chosen', async () => {
  const { page, close } = await open(browser, drain.file);
  for (const picture of await page.locator('svg[role=img]').all()) assert.ok((await picture.getAttribute('aria-label')).length > 10);
  const whole = page.locator('#delivery-whole figure').first();
  await whole.locator('summary').click();
  await whole.locator('tbody tr').first().waitFor();
  assert.equal(await whole.locator('tbody tr').count(), 6);
  const path = () => page.locator('#delivery-whole .met').first().getAttribute('d');
  const first = await path();
  await page.locator('#delivery-controls select').selectOption('partition');
  assert.notEqual(await path(), first);
  await page.locator('#waits .picture').first().hover();
  assert.match(await page.locator('#waits .readout').first().textContent(), /budget/);
  await close();
});

test('light and dark can be chosen, and text stays readable', async () => {
  const { page, close } = await open(browser, drain.file, { scheme: 'light' });
  const contrast = () => page.evaluate(() => {
    const light = (name) => {
      const probe = document.body.appendChild(document.createElement('i'));
      probe.style.color = `var(--${name})`;
      const channels = getComputedStyle(probe).color.match(/\d+/g).slice(0, 3).map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      probe.remove();
      return channels[0] * 0.2126 + channels[1] * 0.7152 + channels[2] * 0.0722;
    };
    const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
    const texts = [['text', 'surface'], ['text', 'page'], ['soft', 'surface'], ['soft', 'page'], ['link', 'page'], ['text', 'idle'], ['soft', 'idle'],
      ['on-protected', 'protected'], ['on-unallocated', 'unallocated'], ['on-other', 'other']];
    const lines = [0, 1, 2, 3, 4, 5].map((i) => [`policy${i}`, 'surface']).concat([['missing', 'surface'], ['mark', 'surface']]);
    return { texts: texts.map(([a, b]) => [a, b, ratio(a, b)]), lines: lines.map(([a, b]) => [a, b, ratio(a, b)]) };
  });
  for (const choice of ['light', 'dark']) {
    await page.locator(`#theme input[value=${choice}]`).check({ force: true });
    const { texts, lines } = await contrast();
    for (const [a, b, ratio] of texts) assert.ok(ratio >= 4.5, `${choice}: ${a} on ${b} has ${ratio.toFixed(2)}`);
    for (const [a, b, ratio] of lines) assert.ok(ratio >= 3, `${choice}: ${a} on ${b} has ${ratio.toFixed(2)}`);
  }
  await close();
});

test('on paper there are no controls, and it is light', async () => {
  const { page, close } = await open(browser, drain.file, { scheme: 'dark' });
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.locator('#gantt-controls').isVisible(), false);
  assert.equal(await page.locator('#delivery-whole svg').first().isVisible(), true);
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  const corner = await page.locator('canvas').first().evaluate((canvas) => [...canvas.getContext('2d').getImageData(1, canvas.height - 2, 1, 1).data]);
  assert.deepEqual(corner, [255, 255, 255, 255]);
  await close();
});
