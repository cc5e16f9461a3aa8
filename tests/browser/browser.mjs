// A headless Chromium, and pages that it opens from files as a reader would.

import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export const LAPTOP = { width: 1366, height: 768 };
export const PHONE = { width: 390, height: 844 };

function executable() {
  const found = process.env.CHROMIUM ?? PLACES.find(existsSync);
  if (!found) throw new Error(`no Chromium at ${PLACES.join(', ')}; install one, or name it in CHROMIUM`);
  return found;
}

export function launch() {
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
  return chromium.launch({ executablePath: executable(), args });
}

// Opens a report; `seen` collects what a page must not do: errors, and requests for anything but the file itself.
export async function open(browser, file, { size = LAPTOP, scheme = 'light', touch = false, before = null } = {}) {
  const context = await browser.newContext({ viewport: size, colorScheme: scheme, hasTouch: touch, isMobile: touch });
  const page = await context.newPage();
  const address = pathToFileURL(file).href;
  const seen = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && seen.push(message.text()));
  page.on('pageerror', (error) => seen.push(error.stack));
  page.on('request', (request) => request.url() !== address && !/^(data|blob):/.test(request.url()) && seen.push(`a request for ${request.url()}`));
  if (before) await page.addInitScript(before);
  await page.goto(address);
  await page.waitForFunction(() => document.documentElement.dataset.ready === 'gantt', null, { timeout: 60_000 });
  return { page, seen, close: () => context.close() };
}

// What the Gantts show now.
export async function view(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const text = await page.locator('canvas').first().getAttribute('data-view');
  const [from, to, top, bottom] = text.split(' ').map(Number);
  return { from, to, top, bottom };
}

// The terms and texts of a lease's card.
export async function card(locator) {
  const head = await locator.locator('strong').textContent();
  const terms = await locator.locator('dt').allTextContents();
  const texts = await locator.locator('dd').allTextContents();
  return { head, pairs: terms.map((term, i) => [term, texts[i]]) };
}
