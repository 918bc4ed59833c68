/**
 * `npm test`: packs the package, which builds it, then runs all specs while the checks that need only the build run beside them. What
 * fails ends all the rest, shows what it wrote, and fails the command. With `--coverage` it also tells which lines of the library
 * the specs run, which takes a fifth more of the processor. Other arguments are handed to Jest.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packArguments, packedPackage } from './support/packed-package.mjs';

// The compiler of TypeScript and the linter's, which are written in Go, live for seconds: they need not tidy up so often.
process.env.GOGC ??= '400';
/** Workers keep two processors busy: collecting in threads of its own would only take time from another one. */
const GARBAGE_COLLECTION = ['--max-semi-space-size=64', '--single-threaded-gc'];
const COVERAGE = '--coverage';

const running = new Set();
let failed = false;

const script = (name, ...args) => quietly(name, 'npm', ['run', name, '--', ...args]);

// Before the pack makes them anew.
await quietly('scripts', process.execPath, ['lua/embed.mjs', '--check']);
const tarball = await packAnew();
// Each of the two keeps one processor busy.
const packageChecked = script('check:package', tarball);
// The specs start the sample, and the linter reads its types.
await script('build:sample');
if (!failed) await Promise.all([specs(), script('lint'), packageChecked]);

function specs() {
  const args = process.argv.slice(2);
  if (args.includes(COVERAGE)) process.env.TEST_COVERAGE = temporaryFolder('sluice-coverage-');
  const jest = ['node_modules/jest/bin/jest.js', ...args.filter((arg) => arg !== COVERAGE)];
  return run(process.execPath, [...GARBAGE_COLLECTION, ...jest], 'inherit').ended;
}

/** Packs what it builds, and not what is left over. The specs that look at the package find it in their environment. */
async function packAnew() {
  const destination = temporaryFolder('sluice-packed-');
  mkdirSync('dist', { recursive: true });
  writeFileSync('dist/left-over.js', '');
  const told = await quietly('pack', 'npm', packArguments(destination));
  if (told === undefined) return undefined;
  const packed = packedPackage(told, destination);
  process.env.TEST_PACKED = JSON.stringify(packed);
  return packed.tarball;
}

/** It goes when this process does. */
function temporaryFolder(prefix) {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Shows the output of a step only if it fails. Resolves with what it wrote to stdout if it passes. */
async function quietly(name, command, args) {
  if (failed) return undefined;
  const start = performance.now();
  const output = [];
  const { child, ended } = run(command, args, 'pipe');
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => output.push({ stream, data }));
  const outcome = await ended;
  if (outcome === 'failed') process.stderr.write(`\n${name} failed:\n${textOf(output)}`);
  if (outcome !== 'passed') return undefined;
  process.stderr.write(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s\n`);
  return textOf(output.filter(({ stream }) => stream === child.stdout));
}

function textOf(output) {
  return Buffer.concat(output.map(({ data }) => data)).toString();
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
