import { describe, expect, it } from '@jest/globals';
import { runHere } from './run-program.js';

// Nothing listens there: each command has to find the mistake before it connects.
const PLACE = ['--redis', 'redis://127.0.0.1:1'];
const LIMIT = ['--limit', 'gcra:10/1h'];
const CAUSE = 'a string of 1 to 200 characters on one line, without control characters and marks of direction';

describe('a wrong argument of a change', () => {
  it.each([
    ['block', ['block', 'api', 'tenant:acme', ...LIMIT]],
    ['unblock', ['unblock', 'api', 'tenant:acme', ...LIMIT]],
    ['reset', ['reset', 'api', 'tenant:acme', ...LIMIT]],
    ['deny', ['deny', 'tenant:acme']],
    ['allow', ['allow', 'tenant:acme']],
    ['unlist', ['unlist', 'tenant:acme']],
    ['rates', ['rates', 'set', 'api', 'rate=5', ...LIMIT]],
  ])('is named once by %s, as it was typed', async (command, args) => {
    for (const option of ['by', 'reason']) {
      expect(await runHere([...args, ...PLACE, `--${option}`, 'a\nb'])).toEqual({
        code: 2,
        stdout: '',
        stderr: `nestjs-sluice ${command}: --${option}: expected ${CAUSE}, received 'a\\nb'\nsee nestjs-sluice ${command} --help\n`,
      });
    }
  });

  it('is named before a console is served', async () => {
    const { code, stderr } = await runHere(['console', '--write', ...PLACE, '--by', 'a\nb']);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`nestjs-sluice console: --by: expected ${CAUSE}`)]);
  });

  it.each([
    ['10.0.0.1/8', "expected the network '10.0.0.0/8' or the address '10.0.0.1', received '10.0.0.1/8'"],
    ['a*b*', 'expected '],
  ])('is <who> for a list of %s', async (who, message) => {
    const { code, stderr } = await runHere(['deny', who, ...PLACE]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^nestjs-sluice deny: <who>: /);
    expect(stderr).toContain(message);
  });
});
