/** Runs what starts in processes of its own, in alternating rounds, and gives the medians of what they print. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { median } from '../../measure.mjs';

const execute = promisify(execFile);

/** One process: what it prints last is its result, as JSON. */
async function runOnce(script, args) {
  const { stdout } = await execute(process.execPath, ['--expose-gc', script, ...args]);
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

/** @returns for each of the named variants its medians; `argsOf(variant)` are the arguments of its process */
export async function compareStarts(script, variants, argsOf, rounds) {
  const results = Object.keys(variants).map(() => []);
  for (let i = 0; i < rounds; i++) {
    const order = [...Object.keys(variants).entries()];
    for (const [index, variant] of i % 2 === 0 ? order : order.toReversed()) {
      results[index].push(await runOnce(script, argsOf(variant)));
    }
  }
  return Object.values(variants).map((name, index) => {
    const fields = Object.keys(results[index][0]);
    const of = (field) => median(results[index].map((result) => result[field]));
    return { name, ...Object.fromEntries(fields.map((field) => [field, of(field)])) };
  });
}
