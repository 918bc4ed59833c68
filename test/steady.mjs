/**
 * `npm run test:steady`: runs the specs of `npm test` again and again beside busy loops, and lists what failed. Build first.
 *
 *   --rounds 20     how many rounds
 *   --load full     busy loops take every processor (default)
 *   --load third    busy loops take a third of the time slices
 *   --load none     nothing else runs
 *   --tier all      `quick` (default), `rest` or `all`
 *
 * Jest gets all arguments after `--`, such as the path of a spec.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '20' },
    load: { type: 'string', default: 'full' },
    tier: { type: 'string', default: 'quick' },
  },
});

const LOOPS = {
  none: undefined,
  full: 'for (;;);',
  // 10 ms of work, 20 ms of rest: a process beside it waits for its turn at any time.
  third:
    'const rest = new Int32Array(new SharedArrayBuffer(4)); for (;;) { const end = performance.now() + 10; while (performance.now() < end); Atomics.wait(rest, 0, 0, 20); }',
};
if (!(values.load in LOOPS))
  throw new Error(`--load: expected one of ${Object.keys(LOOPS).join(', ')}, received ${values.load}`);

const folder = mkdtempSync(join(tmpdir(), 'sluice-steady-'));
const failures = new Map();
let rounds = 0;

const loop = LOOPS[values.load];
const loops =
  loop === undefined ? [] : Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ['-e', loop]));
process.once('exit', () => {
  for (const child of loops) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
process.once('SIGINT', () => process.exit(report()));

while (rounds < Number(values.rounds)) await round();
process.exit(report());

async function round() {
  const start = performance.now();
  const file = join(folder, 'results.json');
  rmSync(file, { force: true });
  const jest = ['node_modules/jest/bin/jest.js', '--json', `--outputFile=${file}`, '--silent', ...positionals];
  const env = { ...process.env, TEST_TIER: values.tier };
  const child = spawn(process.execPath, jest, { env, stdio: ['ignore', 'ignore', 'ignore'] });
  await new Promise((resolve) => child.once('close', resolve));
  rounds += 1;
  const { numPassedTests, testResults } = JSON.parse(readFileSync(file, 'utf8'));
  const failed = testResults.flatMap(failuresOf);
  for (const { name, message } of failed) {
    const known = failures.get(name) ?? { rounds: [], message };
    failures.set(name, { ...known, rounds: [...known.rounds, rounds] });
  }
  const seconds = ((performance.now() - start) / 1000).toFixed(0);
  console.log(`round ${rounds}: ${numPassedTests} passed, ${failed.length} failed, ${seconds} s`);
  for (const { name } of failed) console.log(`  ${name}`);
}

function failuresOf({ name, status, message, assertionResults }) {
  const spec = relative('', name);
  const failed = assertionResults.filter((test) => test.status === 'failed');
  // A spec file that could not run has no failed tests of its own.
  if (failed.length === 0 && status === 'failed') return [{ name: spec, message }];
  return failed.map(({ fullName, failureMessages }) => ({ name: `${spec}: ${fullName}`, message: failureMessages[0] }));
}

/** Prints each test that failed with its rounds and its first message. Returns the exit code. */
function report() {
  console.log(`\n${rounds} rounds beside load '${values.load}': ${failures.size} tests failed at least once`);
  for (const [name, { rounds: failed, message }] of failures)
    console.log(`\n${name} (rounds ${failed.join(', ')})\n${message}`);
  return failures.size > 0 ? 1 : 0;
}
