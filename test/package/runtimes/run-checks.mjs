import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** How long a runtime may take for everything, and its process to end behind the last check. */
const TIMEOUT_MS = 300_000;
const END_MS = 10_000;

const REQUESTS = ['10:00:00.000', '10:00:00.100', '10:00:00.200', '10:00:02.000'];

/**
 * Runs all checks under a runtime, and resolves with their names, and the errors of those that failed.
 *
 * @param runtime `command`: the program; `args`: what it is given before the file to run; `env`: what is added to the environment;
 *   `compiles`: whether it compiles TypeScript with decorators
 * @param program the checks' `main.mjs`, in a project where the package is installed
 * @param packageFolder the package's own folder there
 * @param redisUrl a server for the checks
 */
export async function runChecks(runtime, program, packageFolder, redisUrl) {
  const { lines, code, endMs, stderr } = await run(runtime, [program], { TEST_REDIS_URL: redisUrl });
  const results = lines.filter((line) => line.startsWith('{"name"')).map((line) => JSON.parse(line));
  const ended = code === 0 && endMs !== undefined && endMs < END_MS;
  const problem = endMs === undefined ? 'before its last check' : `${Math.round(endMs)} ms after its last check`;
  return [
    ...results,
    result('the process ends once its apps are closed', ended, `it ended with ${code}, ${problem}\n${stderr}`),
    ...(await cli(runtime, packageFolder)),
    ...(runtime.compiles ? [await decorators(runtime, join(dirname(program), 'decorators.ts'))] : []),
  ];
}

async function decorators(runtime, file) {
  const ended = await run(runtime, [file]);
  return result('an app in TypeScript, with its decorators and their metadata', ended.code === 0, textOf(ended));
}

async function cli(runtime, packageFolder) {
  const file = join(packageFolder, 'dist/cli/main.js');
  const manifest = JSON.parse(await readFile(join(packageFolder, 'package.json'), 'utf8'));
  const folder = await mkdtemp(join(tmpdir(), 'sluice-runtime-'));
  try {
    const log = join(folder, 'access.ndjson');
    await writeFile(log, REQUESTS.map(lineOf).join(''));
    const version = await run(runtime, [file, '--version']);
    const simulated = await run(runtime, [file, 'simulate', '--limit', 'gcra:2/1s', log]);
    const said = simulated.lines.join('\n');
    return [
      result('nestjs-sluice --version', version.lines[0] === manifest.version, textOf(version)),
      result('nestjs-sluice simulate', /^allowed +3 /m.test(said) && /^refused +1 /m.test(said), textOf(simulated)),
    ];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function lineOf(time) {
  return `${JSON.stringify({ time: `2026-09-21T${time}Z`, ip: '203.0.113.7' })}\n`;
}

function result(name, passed, error) {
  return passed ? { name } : { name, error };
}

function textOf({ lines, stderr, code }) {
  return `it ended with ${code}\n${lines.join('\n')}\n${stderr}`;
}

/** Runs a file. `endMs` is the time between the line that says that all is done and the end of the process. */
function run({ command, args = [], env = {} }, rest, more = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args, ...rest], {
      env: { ...process.env, NODE_OPTIONS: '', ...env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
    let stdout = '';
    let stderr = '';
    let doneAt;
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text;
      if (doneAt !== undefined || !stdout.includes('{"done":true}')) return;
      doneAt = performance.now();
      setTimeout(() => child.kill('SIGKILL'), END_MS).unref();
    });
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      const endMs = doneAt === undefined ? undefined : performance.now() - doneAt;
      resolve({ lines: stdout.trim().split('\n'), stderr, code: code ?? signal, endMs });
    });
  });
}
