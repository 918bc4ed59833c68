import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { PAGE } from '../console/console-app.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;

/** The built program, while it serves a console beside an app: that of the shared Redis, unless `--redis` says otherwise. */
export class ServedConsole {
  private constructor(
    private readonly child: ChildProcess,
    /** What it printed. */
    readonly printed: string,
    readonly link: string,
    private readonly cookie: string,
  ) {}

  static async start(...args: string[]): Promise<ServedConsole> {
    const program = join(PACKAGE_FOLDER, 'dist/cli/main.js');
    const child = spawn(
      process.execPath,
      [program, 'console', ...(args.includes('--redis') ? [] : ['--redis', REDIS]), ...args],
      { stdio: 'pipe' },
    );
    let printed = '';
    let complained = '';
    child.stderr.on('data', (chunk) => (complained += String(chunk)));
    const link = await new Promise<string>((resolve, reject) => {
      child.once('exit', () => reject(new Error(complained)));
      child.stdout.on('data', (chunk) => {
        printed += String(chunk);
        const [found] = /http:\S+/.exec(printed) ?? [];
        if (found !== undefined && printed.includes('ends it')) resolve(found);
      });
    });
    const answer = await fetch(link, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/console']);
    const [cookie = ''] = answer.headers.get('set-cookie')?.split(';') ?? [];
    return new ServedConsole(child, printed, link, cookie);
  }

  get url(): string {
    return new URL('/console', this.link).href;
  }

  get(path: string, cookie = this.cookie): Promise<Response> {
    return fetch(`${this.url}/api/${path}`, { headers: { cookie } });
  }

  async read<T>(path: string): Promise<T> {
    const response = await this.get(path);
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  post(path: string, body: object): Promise<Response> {
    const headers = { cookie: this.cookie, ...PAGE };
    return fetch(`${this.url}/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  /** Resolves with its exit code. */
  async stop(): Promise<number | null> {
    const ended = new Promise<number | null>((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGINT');
    return ended;
  }
}
