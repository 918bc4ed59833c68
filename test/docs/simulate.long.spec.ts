import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { LogFolder } from '../cli/run-program.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

const page = readFileSync(join(PACKAGE_FOLDER, 'docs/guides/simulate.md'), 'utf8');
const readme = readFileSync(join(PACKAGE_FOLDER, 'README.md'), 'utf8');

/** The blocks of a page in a language. */
function blocks(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))].map(([, block]) => block!);
}

const COMMAND = /npx nestjs-sluice simulate ([^`\n]*)/;
const commands = blocks(page, 'sh').map((block) => COMMAND.exec(block)![1]!.split(' '));

const logs = new LogFolder();

describe('the guide to simulations', () => {
  beforeAll(() => writeFile(logs.path('access.ndjson'), blocks(page, 'jsonl')[0]!));

  it('shows what the program writes', async () => {
    const [first = []] = commands;
    expect(first).toContain('access.ndjson');
    expect(await logs.simulate(...first)).toEqual({ code: 0, stdout: blocks(page, 'text')[0], stderr: '' });
  });

  it('has commands that run', async () => {
    expect(commands.length).toBeGreaterThan(1);
    for (const args of commands) expect(await logs.simulate(...args)).toMatchObject({ code: 0, stderr: '' });
  });

  it('has limits that are read, and each key of a limit', async () => {
    const limits = [...page.matchAll(/^\| `([a-z-]+:[^`]+)` /gm)].map(([, limit]) => limit!);
    expect(limits.length).toBeGreaterThan(4);
    for (const limit of limits) {
      const run = await logs.simulate('access.ndjson', '--limit', limit);
      expect([limit, run.code, run.stderr]).toEqual([limit, 0, '']);
    }
  });

  it('names every option of the program', async () => {
    const { stdout } = await logs.simulate('--help');
    const options = [...stdout.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, option]) => option!);
    expect(options.length).toBeGreaterThan(10);
    expect(options.filter((option) => option !== '--help' && !page.includes(option))).toEqual([]);
    const named = [...page.matchAll(/`(--[a-z-]+)/g)].map(([, option]) => option!);
    expect(named.filter((option) => !options.includes(option))).toEqual([]);
  });

  it('is where the README sends its readers', () => {
    expect(readme).toContain('](docs/guides/simulate.md)');
    expect(COMMAND.test(readme)).toBe(true);
  });
});
