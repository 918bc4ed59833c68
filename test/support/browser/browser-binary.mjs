import { readdirSync } from 'node:fs';
import { findOnPath, install } from '../processes/system-programs.mjs';

const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome'];

const PACKAGES = {
  'apt-get': ['chromium', 'fonts-liberation'],
  apk: ['chromium', 'font-liberation'],
  dnf: ['chromium', 'liberation-fonts'],
};

export const WHAT_TO_INSTALL =
  'The tests of pages need a real Chromium: install it so that chromium or google-chrome is on the PATH ' +
  '(Debian: apt-get install chromium), or set TEST_BROWSER to its path.';

/** The path of the browser, or undefined. */
export function findBrowser() {
  return process.env.TEST_BROWSER || findOnPath(...BROWSERS);
}

/** The path of a browser, installed with the system's package manager if there is none and that is allowed. */
export function ensureBrowser() {
  if (!findBrowser()) install('chromium', PACKAGES);
  const found = findBrowser();
  if (!found) throw new Error(WHAT_TO_INSTALL);
  return found;
}

/** True if a run of Jest includes specs that open pages: those in folders `browser`. None of them is part of `npm test`. */
export function opensPages(patterns, tier) {
  if (tier === 'quick') return false;
  if (patterns.length === 0) return true;
  const wanted = patterns.map((pattern) => new RegExp(pattern, 'i'));
  const test = new URL('../../', import.meta.url);
  return readdirSync(test, { recursive: true, encoding: 'utf8' })
    .filter((path) => /[\\/]browser[\\/].*\.long\.spec\.ts$/.test(path))
    .some((path) => wanted.some((pattern) => pattern.test(new URL(path, test).pathname)));
}
