import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runHere } from '../cli/run-program.js';
import { RatesApp } from '../app/overrides/overrides-app.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { withOwnRedis } from '../support/redis/own-redis.js';

const page = readFileSync(join(PACKAGE_FOLDER, 'docs/guides/terminal.md'), 'utf8');

/** The first block of the page in a language. */
function block(language: string): string {
  return new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(page)![1]!;
}

/** The words of a command line, quotes taken off. */
function words(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word!);
}

/** The cells of a table. Some of the time is over by now. */
function cells(text: string): string[][] {
  const rounded = text.replaceAll(/59 min \d+ s|60 min/g, '1 h').replaceAll(/9 min \d+ s/g, '10 min');
  return rounded.split('\n').map((line) => line.split(/ {2,}/));
}

let url = '';
withOwnRedis((_, server) => {
  url = server.url;
});

describe('the guide to the terminal', () => {
  let app: RatesApp;
  beforeAll(async () => {
    const define = { api: { algo: 'fixed-window', rate: 100, interval: '1h' } } as const;
    app = await RatesApp.start({ redis: url, define });
  });
  afterAll(() => app.close());

  it('shows what the program writes', async () => {
    expect(page).toContain("`define: { api: { algo: 'fixed-window', rate: 100, interval: '1h' } }`");
    await app.service.for('api').consume('tenant:acme', 42);
    const [program, command] = block('sh').trim().split('\n').slice(-1)[0]!.split('nestjs-sluice ');
    expect(program).toBe('npx ');
    const { code, stdout, stderr } = await runHere([...words(command!), '--redis', url]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(cells(stdout)).toEqual(cells(block('text')));
    expect(await app.service.for('api').consume('tenant:acme')).toMatchObject({ allowed: false });
  });

  it('names every command', async () => {
    const { stdout } = await runHere(['--help']);
    const commands = [...stdout.matchAll(/^ {2}(\w+) {2,}\w/gm)].map(([, name]) => name!);
    expect(commands).toContain('block');
    for (const command of commands) expect(page).toMatch(new RegExp(`^\\| \`${command}[ \`]`, 'm'));
  });
});

describe('the reference of the commands', () => {
  const sections = readFileSync(join(PACKAGE_FOLDER, 'docs/reference/cli.md'), 'utf8').split(/^## /m);
  const optionsIn = (text: string) => new Set([...text.matchAll(/`(--[a-z-]+)/g)].map(([, option]) => option!));

  it('has every option of every command, and no other', async () => {
    const { stdout } = await runHere(['--help']);
    const commands = [...stdout.matchAll(/^ {2}(\w+) {2,}\w/gm)].map(([, name]) => name!);
    expect(commands.length).toBeGreaterThan(10);
    for (const command of commands) {
      const section = sections.find((text) => text.startsWith(`\`${command}\`\n`)) ?? '';
      const help = (await runHere([command, '--help'])).stdout;
      const options = [...help.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, option]) => option!);
      const wanted = options.filter((option) => option !== '--help').toSorted();
      expect([command, [...optionsIn(section)].toSorted()]).toEqual([command, wanted]);
    }
  });

  it('explains the options that commands share', () => {
    const shared = optionsIn(sections.find((text) => text.startsWith('Shared options\n'))!);
    const named = sections.flatMap((text) =>
      [...text.matchAll(/^Shared options: ([^.]+)\./gm)].map(([, list]) => list!),
    );
    expect(named.length).toBeGreaterThan(10);
    for (const list of named) expect([...optionsIn(list)].filter((option) => !shared.has(option))).toEqual([]);
  });
});
