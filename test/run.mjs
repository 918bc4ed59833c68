/**
 * Runs the test suite, and ends with one line: `N passed, N failed`.
 *
 * - `npm test`: build, lint, types, and the specs that prove each promise once. It needs Node and a Redis or Valkey server.
 * - `npm run test:all`: everything, with the package that is packed, browsers, generated projects, failovers and chaos.
 * - `npm run test:rest`: what `test:all` does and `npm test` doesn't. Run it after `npm test`.
 *
 * `--coverage` also reports which lines of the library the specs run. Jest gets all other arguments.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packArguments, packedPackage } from './support/processes/packed-package.mjs';

// The Go programs (TypeScript's compiler, the linter) run for seconds only: collecting garbage less often is faster.
process.env.GOGC ??= '400';
/** Jest's workers keep all processors busy, so a thread of its own for the garbage collector only takes time from them. */
const JEST = ['--max-semi-space-size=64', '--single-threaded-gc', 'node_modules/jest/bin/jest.js'];
const OWN_ARGUMENTS = ['--all', '--rest', '--coverage'];

const [isAll, isRest, isCoverage] = OWN_ARGUMENTS.map((name) => process.argv.includes(name));
const jestArguments = process.argv.slice(2).filter((argument) => !OWN_ARGUMENTS.includes(argument));
if (!isAll) process.env.TEST_TIER = isRest ? 'rest' : 'quick';
// Scripts then fail as soon as they touch a key that they don't declare. Without it, the same specs run in `npm test`.
if (isAll) process.env.TEST_SCRIPT_KEYS ??= 'declared';

/** What failed besides tests, such as the linter. */
const failures = [];

if (await build()) await Promise.all([specs(), ...checks()]);
const { passed, failed, skipped } = counts();
for (const { name, output } of failures) process.stderr.write(`\n${name} failed:\n${output}\n`);
process.exitCode = failed + failures.length > 0 ? 1 : 0;
process.stdout.write(
  `${passed} passed, ${failed + failures.length} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`,
);

/** Specs of processes, and the linter, use what is built. True if it succeeded. */
async function build() {
  // Before the build writes it.
  if (!isRest && !(await step('Lua script', process.execPath, ['lua/embed.mjs', '--check']))) return false;
  if (!isAll && !isRest) return (await script('build:console')) && script('build:lib');
  return (await pack()) && script('build:sample');
}

function checks() {
  return [...(isRest ? [] : [script('lint')]), ...(isAll || isRest ? [checkPackage()] : [])];
}

/** Packs what it builds, and not what is left over. The specs of the package find it in their environment. */
async function pack() {
  const destination = temporaryFolder('sluice-packed-');
  mkdirSync('dist', { recursive: true });
  writeFileSync('dist/left-over.js', '');
  const output = await step('pack', 'npm', packArguments(destination));
  if (output === undefined) return false;
  process.env.TEST_PACKED = JSON.stringify(packedPackage(output, destination));
  return true;
}

function checkPackage() {
  return script('check:package', JSON.parse(process.env.TEST_PACKED).tarball);
}

async function specs() {
  if (isCoverage) process.env.TEST_COVERAGE = temporaryFolder('sluice-coverage-');
  process.env.TEST_COUNTS = join(temporaryFolder('sluice-counts-'), 'counts.json');
  const { code } = await run(process.execPath, [...JEST, ...jestArguments], 'inherit');
  if (code !== 0 && counts().failed === 0) failures.push({ name: 'jest', output: `It ended with ${code}.` });
}

/** What the reporter of Jest wrote. */
function counts() {
  try {
    return JSON.parse(readFileSync(process.env.TEST_COUNTS, 'utf8'));
  } catch {
    return { passed: 0, failed: 0, skipped: 0 };
  }
}

function script(name, ...args) {
  return step(name, 'npm', ['run', name, '--', ...args]);
}

/** Shows the output of a step only if it fails. Resolves with its stdout if it succeeds. */
async function step(name, command, args) {
  const start = performance.now();
  const { code, stdout, stderr } = await run(command, args, 'pipe');
  if (code !== 0) {
    failures.push({ name, output: stdout + stderr });
    return undefined;
  }
  process.stderr.write(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s\n`);
  return stdout === '' ? ' ' : stdout;
}

function run(command, args, stdio) {
  const child = spawn(command, args, { stdio: ['inherit', stdio, stdio] });
  const output = { stdout: '', stderr: '' };
  for (const name of Object.keys(output)) child[name]?.setEncoding('utf8').on('data', (text) => (output[name] += text));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    // Not 'exit': output may follow that.
    child.once('close', (code) => resolve({ code, ...output }));
  });
}

/** A folder that is removed when this process ends. */
function temporaryFolder(prefix) {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
