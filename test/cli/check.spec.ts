import { mkdir } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { LogFolder, runHere, runProgram as runBuilt } from './run-program.js';

const files = new LogFolder();
const check = (...args: string[]) => runHere(['check', ...args]);

describe('nestjs-sluice check', () => {
  beforeAll(async () => {
    await files.write('limits.yaml', [
      'limits:',
      '  api: { algo: gcra, rate: 5, interval: 1s }',
      'overrides:',
      '  api: { a: { rate: 1 } }',
    ]);
    await files.write('limits.json', [{ limits: { api: { rate: 5 } } }]);
    await files.write('wrong.yaml', ['limits:', '  api: { rate: -1 }', '  "\\u001b[2J": { reat: 1 }']);
    await mkdir(files.path('folder.yaml'));
  });

  it('exits with 0 for files that are right', async () => {
    expect(await check('limits.yaml', 'limits.json')).toEqual({
      code: 0,
      stdout:
        'limits.yaml: ok (limits: 1, overrides: 1, lists: 0)\nlimits.json: ok (limits: 1, overrides: 0, lists: 0)\n',
      stderr: '',
    });
  });

  it('exits with 1 for one that is wrong, with a line for each problem and nothing that a terminal obeys', async () => {
    const { code, stdout, stderr } = await check('limits.json', 'wrong.yaml');
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      'limits.json: ok (limits: 1, overrides: 0, lists: 0)',
      'wrong.yaml:2:16 limits.api.rate: expected a whole number >= 1, received -1',
      "wrong.yaml:3:3 limits['\\x1B[2J']: expected 1 to 128 printable ASCII characters, received the name '\\x1B[2J'",
      expect.stringContaining("wrong.yaml:3:18 limits['\\x1B[2J'].reat: unknown option 'reat'. Did you mean 'rate'?"),
      '',
    ]);
  });

  it.each([
    ['missing.yaml', 'missing.yaml: it cannot be read: ENOENT'],
    ['folder.yaml', 'folder.yaml: it cannot be read: EISDIR'],
  ])('exits with 1 for %s, which cannot be read', async (file, line) => {
    expect(await check(file)).toMatchObject({ code: 1, stdout: expect.stringContaining(line), stderr: '' });
  });

  it('writes JSON', async () => {
    const { code, stdout } = await check('--json', 'limits.yaml', 'wrong.yaml');
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual({
      files: [
        { file: 'limits.yaml', limits: 1, overrides: 1, lists: 0, problems: [] },
        {
          file: 'wrong.yaml',
          limits: 0,
          overrides: 0,
          lists: 0,
          problems: [
            {
              file: 'wrong.yaml',
              line: 2,
              column: 16,
              path: 'limits.api.rate',
              message: 'expected a whole number >= 1, received -1',
            },
            expect.objectContaining({ line: 3, column: 3 }),
            expect.objectContaining({ line: 3, column: 18 }),
          ],
        },
      ],
    });
  });

  it.each([
    ['no file', [], 'policy file: missing, expected at least one .yaml, .yml or .json file'],
    [
      'a file of another kind',
      ['limits.toml'],
      "'limits.toml' is not a policy file: expected a name that ends with .yaml, .yml or .json",
    ],
    ['an unknown option', ['--strict', 'limits.yaml'], "unknown option '--strict', expected one of --json, --help"],
  ])('exits with 2 for %s', async (_, args, message) => {
    const { code, stdout, stderr } = await check(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toBe(`nestjs-sluice check: ${message}\nsee nestjs-sluice check --help\n`);
  });

  it('tells its options', async () => {
    const { code, stdout } = await check('--help');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: nestjs-sluice check/);
  });

  it.each([
    ['files that are right', ['limits.yaml', 'limits.json'], 0],
    ['one that is wrong', ['limits.json', 'wrong.yaml'], 1],
    ['no file', [], 2],
  ])('is built as the source says, for %s', async (_, args, exitCode) => {
    const built = await runBuilt(['check', ...args]);
    expect(built.code).toBe(exitCode);
    expect(built).toEqual(await check(...args));
  });
});
