import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { ensureBrowser } from './browser-binary.mjs';

/** Ends only what hangs. */
const TIMEOUT_MS = 240_000;

/**
 * The first two are what the address bar would show: Chromium starts processes for it beside each page, though no window is seen.
 * Chromium heeds the last such list alone, so the others are those of Playwright.
 */
const DISABLED_FEATURES = [
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'AimEnabled',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ThirdPartyStoragePartitioning',
];

const ARGUMENTS = ['--disable-gpu', '--disable-dev-shm-usage', `--disable-features=${DISABLED_FEATURES.join()}`];

/** Starts a browser. Who starts one closes it. */
export function startBrowser(): Promise<Browser> {
  // Chromium refuses to run as root with its sandbox.
  const asRoot = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath: ensureBrowser(), headless: true, args: [...ARGUMENTS, ...asRoot] });
}

/** A browser that opens pages, each in a context of its own. */
export interface SpecBrowser {
  open: (url: string, options?: BrowserContextOptions) => Promise<OpenedPage>;
}

/** One browser for all tests of a spec. A page that a test opens is closed with the test, any other one with the browser. */
export function browserOfSpec(): SpecBrowser {
  let browser: Browser;
  let ofTest: BrowserContext[] | undefined;
  beforeEach(() => {
    ofTest = [];
  });
  afterEach(async () => {
    await Promise.all(ofTest!.map((context) => context.close()));
    ofTest = undefined;
  });
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());
  return {
    async open(url, options) {
      const context = await browser.newContext(options);
      ofTest?.push(context);
      const page = await context.newPage();
      page.setDefaultTimeout(TIMEOUT_MS);
      const complaints = complaintsOf(page);
      await page.goto(url);
      return { page, complaints };
    },
  };
}

/** A page, in a context of its own, and what the browser complained of since it was opened. */
export interface OpenedPage {
  readonly page: Page;
  /** Errors of scripts, messages of level `error` on the console, and violations of the content security policy. */
  readonly complaints: string[];
}

function complaintsOf(page: Page): string[] {
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  // Violations of the policy are among them.
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`console: ${message.text()} ${message.location().url}`);
  });
  return complaints;
}
