import { setTimeout as pause } from 'node:timers/promises';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import { ConsoleApp, type ConsoleAppOptions } from '../console-app.js';
import type { SpecBrowser } from '../../support/browser/browser.js';
import { freshPrefix } from '../../support/limits/stores.js';

/** Frameworks, as titles of tests, and whether the app is to run on Fastify. */
export const FRAMEWORKS = [
  ['Express', false],
  ['Fastify', true],
] as const;

/** What the page and its app are used by: somebody who may change things. */
export const ADMIN: BrowserContextOptions = { extraHTTPHeaders: { 'x-user': 'admin' } };

export const VIEWS = ['overview', 'limit/things', 'lookup', 'deviations', 'rates', 'lists', 'changes'] as const;

/** Several instances of an app that count on one Redis. */
export class Instances {
  private constructor(
    readonly apps: readonly ConsoleApp[],
    readonly prefix: string,
  ) {}

  static async start(count: number, redis: string, options: ConsoleAppOptions): Promise<Instances> {
    const prefix = options.limits?.prefix ?? freshPrefix();
    const limits = { redis, prefix, ...options.limits } as const;
    const apps = await Promise.all(Array.from({ length: count }, () => ConsoleApp.start({ ...options, limits })));
    return new Instances(apps, prefix);
  }

  /** Where the first instance has its console. */
  get url(): string {
    return `${this.apps[0]!.url}/ops/limits`;
  }

  /** Requests of a client, each to the next instance. Resolves with their statuses. */
  async send(count: number, client: string): Promise<number[]> {
    const statuses: number[] = [];
    for (let request = 0; request < count; request++) {
      const app = this.apps[request % this.apps.length]!;
      statuses.push((await app.get('things', { 'x-client': encodeURIComponent(client) })).status);
    }
    return statuses;
  }

  async close(): Promise<void> {
    await Promise.all(this.apps.map((app) => app.close()));
  }
}

/** The console, opened by an administrator in a browser. */
export class ConsolePage {
  private constructor(
    readonly page: Page,
    /** What the browser complained of. */
    readonly complaints: readonly string[],
  ) {}

  static async open(browser: SpecBrowser, url: string, options: BrowserContextOptions = {}): Promise<ConsolePage> {
    const { page, complaints } = await browser.open(url, { ...ADMIN, ...options });
    await page.getByRole('heading', { level: 1 }).waitFor();
    return new ConsolePage(page, complaints);
  }

  /** Shows a view, with its data. */
  async show(view: string): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
    await this.page
      .getByText(/^Loading /)
      .first()
      .waitFor({ state: 'detached' });
    await this.page.getByRole('heading', { level: 1 }).waitFor();
  }

  async lookUp(identity: string): Promise<void> {
    await this.show('lookup');
    await this.page.getByRole('textbox', { name: 'Identity' }).fill(identity);
    const found = this.page.getByRole('heading', { name: identity, exact: true });
    // Specs look up more than the console allows one client: the more limits there are, the fewer times.
    const tooMany = this.page.getByText(/^too many console requests/);
    for (;;) {
      await this.page.getByRole('button', { name: 'Look up' }).click();
      await found.or(tooMany).first().waitFor();
      if (await found.isVisible()) return;
      await pause(1_000);
    }
  }

  /** The card of a limit in Look-up and in Rates. */
  card(limit: string): Locator {
    return this.page.getByRole('region', { name: limit, exact: true });
  }

  /** The row of a limit in the overview. */
  row(limit: string): Locator {
    return this.page.getByRole('row').filter({ has: this.page.getByRole('link', { name: limit, exact: true }) });
  }

  /** The text of a cell, by its column. */
  async cell(limit: string, column: string): Promise<string> {
    return (await this.cellOf(limit, column).textContent()) ?? '';
  }

  /** Waits until a cell has a text. The browser looks for it, which takes less than to ask the browser again and again. */
  async cellWith(text: RegExp, limit: string, column: string): Promise<void> {
    await this.cellOf(limit, column).filter({ hasText: text }).waitFor();
  }

  private cellOf(limit: string, column: string): Locator {
    return this.row(limit).locator(`[data-label="${column}"]`);
  }

  get dialog(): Locator {
    return this.page.getByRole('dialog');
  }

  /** The address, the title and all that the browser keeps: nothing of it may name an identity. */
  kept(): Promise<string> {
    return this.page.evaluate<string>(
      '[location.href, document.title, JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage })].join(" ")',
    );
  }
}
