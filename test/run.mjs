/**
 * `npm test`: builds the package, then runs all specs while the checks that need only the build run beside them. What fails ends
 * all the rest, shows what it wrote, and fails the command. Arguments are handed to Jest.
 */
import { spawn } from 'node:child_process';

const JEST = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];

const running = new Set();
let failed = false;

const script = (name) => quietly(name, 'npm', ['run', name]);

await script('build:lua');
await script('build:console');
await script('build:lib');
// The specs start the sample, and the checks read its types.
await script('build:sample');
await Promise.all([
  run(process.execPath, [...JEST, '--coverage', ...process.argv.slice(2)], 'inherit').ended,
  checks(),
]);

/** One after the other: the specs keep the other cores busy. */
async function checks() {
  for (const name of ['lint', 'check:package']) await script(name);
}

/** Shows the output of a step only if it fails. */
async function quietly(name, command, args) {
  if (failed) return;
  const start = performance.now();
  const output = [];
  const { child, ended } = run(command, args, 'pipe');
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => output.push(data));
  const outcome = await ended;
  if (outcome === 'failed') process.stderr.write(Buffer.concat([Buffer.from(`\n${name} failed:\n`), ...output]));
  if (outcome === 'passed') process.stderr.write(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s\n`);
}

function run(command, args, stdio) {
  const child = spawn(command, args, { stdio: ['inherit', stdio, stdio] });
  running.add(child);
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject);
    // Not 'exit': what it wrote last may come after that.
    child.once('close', (code) => {
      running.delete(child);
      if (code === 0 || failed) return resolve(code === 0 ? 'passed' : 'ended');
      fail();
      resolve('failed');
    });
  });
  return { child, ended };
}

function fail() {
  failed = true;
  process.exitCode = 1;
  for (const child of running) child.kill('SIGTERM');
}
