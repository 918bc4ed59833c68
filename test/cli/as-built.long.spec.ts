import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { LogFolder, runHere, runProgram as runBuilt } from './run-program.js';

const logs = new LogFolder();
const START = Date.UTC(2026, 8, 21, 10);

const requests = Array.from({ length: 400 }, (_, i) => ({
  time: START + Math.floor(i / 7) * 130 + (i % 3),
  ip: `203.0.113.${i % 5}`,
  path: `/items/${i % 4}`,
  units: 1 + (i % 3),
}));

const ndjson = requests.map(({ time, ...rest }) => JSON.stringify({ time: new Date(time).toISOString(), ...rest }));

const combined = requests.map(({ time, ip, path }) => {
  const at = new Date(time).toUTCString().split(' ');
  return `${ip} - - [${at[1]}/${at[2]}/${at[3]}:${at[4]} +0000] "GET ${path} HTTP/1.1" 200 17 "-" "tests"`;
});

/** Each algorithm, and what a limit can be told besides. */
const limits = [
  'gcra:6/1s,burst=9@steady',
  'token-bucket:5/2s,burst=20,refill=intervally',
  'sliding-window:60/1m',
  'sliding-log:20/5s,blockFor=2s@strict',
  'fixed-window:30/10s,key=global',
  'calendar-window:1000/day,timezone=Europe/Berlin',
  'leaky-bucket:9/1s,queue=12',
  'gcra:1/1s,mode=shadow@next',
].flatMap((limit) => ['--limit', limit]);

const file = (name: string) => logs.path(name);

describe('the source of the program says what the built one does', () => {
  beforeAll(async () => {
    await logs.write('access.ndjson', [...ndjson, 'no JSON', '{"time":"never"}']);
    await logs.write('noise', ['\u0000\u0001\u001B[2Jbinary\u009B\u202E']);
    await logs.write('access.log', [...combined, 'no log']);
  });

  it.each<[string, () => string[], string?]>([
    ['of a log of JSON lines', () => ['simulate', ...limits, file('access.ndjson')]],
    ['of a server', () => ['simulate', ...limits, '--key', '{ip} {path}', file('access.log')]],
    ['as JSON', () => ['simulate', ...limits, '--json', '--cost', 'units', file('access.ndjson')]],
    ['of its input', () => ['simulate', '--limit', 'gcra:3/1s', '-'], ndjson.join('\n')],
    ['of few keys', () => ['simulate', '--limit', 'gcra:3/1s', '--max-keys', '2', file('access.ndjson')]],
    [
      'of requests that it makes',
      () => ['simulate', '--limit', 'gcra:6/1s', '--generate', 'poisson:40/s', '--for', '20s', '--seed', '7'],
    ],
    ['of steady ones', () => ['simulate', '--limit', 'gcra:6/1s', '--generate', 'constant:9/s', '--for', '9s']],
    ['of a limit that is misspelt', () => ['simulate', '--limit', 'gcra:6/1s,bust=3', file('access.ndjson')]],
    ['of a log that is not there', () => ['simulate', '--limit', 'gcra:6/1s', file('none.ndjson')]],
    ['of noise', () => ['simulate', '--limit', 'gcra:6/1s', file('noise')]],
    ['of an empty input', () => ['simulate', '--limit', 'gcra:6/1s', '-']],
    ['of itself', () => ['--help']],
    ['of a command', () => ['simulate', '--help']],
    ['of its version', () => ['--version']],
    ['without a command', () => []],
    ['of an unknown command', () => ['imitate']],
  ])('%s', async (_, args, input = '') => {
    const here = await runHere(args(), input);
    expect(here).toEqual(await runBuilt(args(), { input }));
    expect(here.stdout + here.stderr).not.toBe('');
  });

  it('in a chart', async () => {
    const charts = ['here.svg', 'built.svg'].map(file);
    const args = (chart: string) => ['simulate', ...limits, '--svg', chart, file('access.ndjson')];
    expect((await runHere(args(charts[0]!))).code).toBe(0);
    expect((await runBuilt(args(charts[1]!))).code).toBe(0);
    const [here, built] = await Promise.all(charts.map((chart) => readFile(chart, 'utf8')));
    expect(here).toBe(built);
    expect(here).toMatch(/^<svg/);
  });
});
