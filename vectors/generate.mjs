/**
 * Writes the vectors from what the library decides in process: `node vectors/generate.mjs`, after `npm run build`. With `--check` it
 * writes nothing, and exits with 1 if a file differs.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { MemoryStore } from '../build/index.js';
import { blockTerms } from '../build/engine/limits/block-terms.js';
import { featuresOfOptions } from '../build/storage/features/index.js';
import { GeneralProgram } from '../build/storage/stores/redis/general-program.js';
import { CompiledLimit } from '../build/testing/store/index.js';
import { files } from './cases.mjs';

/** Begins the keys on Redis: runners replace it. */
const PREFIX = 'vectors';
/** When each case begins, in microseconds: Saturday 2026-11-28, 12:00:00.123456 UTC. */
const START = 1_795_867_200_123_456;
/** Added to each time to live on Redis, in milliseconds: the clock of the vectors isn't that of the server. */
const SLACK = 3_600_000;
/** Stands for the ticket of held units while a program is made. */
const TICKET = 777_777_777_777;

/** Programs number their calls, from a random number on: here always the same ones. */
let drawn = 0;
Math.random = () => (++drawn % 1000) / 1000;

function compiled(name, { blockFor, strike, forgetAfter, scope, ...options }) {
  const blocks = blockTerms({ blockFor, strike, forgetAfter }, name);
  return new CompiledLimit(options, {
    location: 'vectors',
    name,
    featuresOfOptions,
    instance: scope === 'instance',
    ...blocks,
  });
}

/** What anyone can compare of a decision. A wait that never ends is `null`. */
function shown({ allowed, remaining, retryAfterMs, resetAfterMs, delayMs, offences }) {
  const wait = retryAfterMs === Infinity ? null : retryAfterMs;
  return { allowed, remaining, retryAfterMs: wait, resetAfterMs, delayMs, ...(offences !== undefined && { offences }) };
}

/** The numbers that the script replies with for a decision. */
function numbersOf({ allowed, remaining, retryAfterMs, resetAfterMs, delayMs, ticket, offences }, limit) {
  const isHeld = allowed && ticket !== undefined;
  const numbers = [4 * resetAfterMs + (isHeld ? 2 : allowed ? 1 : 0), remaining];
  if (!allowed) numbers.push(retryAfterMs === Infinity ? -1 : retryAfterMs);
  if (isHeld)
    numbers.push(delayMs, limit.algorithm.leases === undefined && limit.estimates === undefined ? ticket : '*');
  if (offences !== undefined) numbers.push(offences);
  return numbers;
}

async function caseOf({ name, limits: given, steps: asked }, number) {
  let now = START;
  const store = new MemoryStore({ clock: () => now, slackMs: Infinity });
  const limits = new Map(Object.entries(given).map(([label, options]) => [label, compiled(label, options)]));
  const counter = ({ limit, key }) => ({ limit: limits.get(limit), identity: `${key}-${number}` });
  const answers = [];
  const steps = [];
  for (const { at, call, entries, of, units, actual, ms } of asked) {
    now = START + Math.round(at * 1000);
    const program = new GeneralProgram(PREFIX, now);
    const step = { at, call };
    let reply;
    let answer;
    if (entries !== undefined) {
      const check = {
        entries: entries.map((entry) => ({ ...counter(entry), cost: entry.cost })),
        ...(call === 'peek' && { peek: true }),
        ...(call === 'hold' && { hold: true, refundable: true }),
        ...(call === 'take-refundable' && { refundable: true }),
      };
      [answer] = await store.check([check]);
      program.check(check);
      reply = answer.flatMap((each, index) => numbersOf(each, check.entries[index].limit));
      if (check.refundable) reply.push(now);
      step.entries = entries.map((entry) => ({ ...entry, key: `${entry.key}-${number}` }));
      step.expect = answer.map(shown);
    } else {
      const first = of === undefined ? undefined : asked[of];
      const entry = first?.entries[0] ?? asked[0].entries[0];
      const decision = of === undefined ? undefined : answers[of][0];
      const target = { ...counter(entry), units: units ?? entry.cost };
      const { algorithm, estimates } = target.limit;
      const isNumbered = decision?.ticket !== undefined && (algorithm.leases !== undefined || estimates !== undefined);
      const taken = {
        ...target,
        ticket: decision?.ticket,
        chargedAt: decision?.chargedAt,
        ...(actual !== undefined && { actual }),
      };
      Object.assign(step, { ...(of !== undefined && { of }), limit: entry.limit, key: target.identity });
      if (call === 'block') {
        await store.block(target, ms);
        program.block(target, ms);
        step.ms = ms;
      } else if (call === 'penalize') {
        await store.penalize(target);
        program.penalize(target);
        step.units = target.units;
      } else {
        await store.refund([taken]);
        program.refund(isNumbered ? { ...taken, ticket: TICKET } : taken);
        step.units = target.units;
        if (actual !== undefined) step.actual = actual;
      }
    }
    answers.push(answer);
    if ([...limits.values()].every(({ adapts }) => !adapts)) {
      const text = program.text([now, SLACK]).replace(String(TICKET), `{${of}.3}`);
      step.redis = { keys: [...program.allKeys], program: text, ...(reply !== undefined && { reply }) };
    }
    steps.push(step);
  }
  await store.close();
  return { name, limits: given, start: START, steps };
}

function textOf(file) {
  const cases = file.cases.map(
    ({ steps, ...rest }) =>
      `    {\n${Object.entries(rest)
        .map(([part, value]) => `      ${JSON.stringify(part)}: ${JSON.stringify(value)},\n`)
        .join(
          '',
        )}      "steps": [\n${steps.map((step) => `        ${JSON.stringify(step)}`).join(',\n')}\n      ]\n    }`,
  );
  return `{\n  "format": 1,\n  "about": ${JSON.stringify(file.about)},\n  "cases": [\n${cases.join(',\n')}\n  ]\n}\n`;
}

let number = 0;
let differs = false;
for (const [name, { about, cases }] of Object.entries(files)) {
  const made = [];
  for (const each of cases) made.push(await caseOf(each, ++number));
  const text = textOf({ about, cases: made });
  const path = new URL(`${name}.json`, import.meta.url);
  if (!process.argv.includes('--check')) writeFileSync(path, text);
  else if (readFileSync(path, 'utf8') !== text) {
    process.stderr.write(`vectors/${name}.json differs from what vectors/generate.mjs makes\n`);
    differs = true;
  }
}
process.exitCode = differs ? 1 : 0;
