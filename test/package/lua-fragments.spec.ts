import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import type { AlgorithmOptions } from '../../lib/index.js';
import { CompiledLimit } from '../../lib/testing/store/index.js';
import { algorithms } from '../../lib/engine/algorithms/index.js';
import * as operations from '../../lib/storage/stores/redis/operations.js';
import { namesOf } from '../support/limits/lua-names.js';
import { compile, featuresOfOptions, featureTerms } from '../support/limits/stores.js';

/** Each parameter has a value of its own. */
const options: Record<string, AlgorithmOptions> = {
  'fixed-window': { algo: 'fixed-window', rate: 7, interval: '10s' },
  'calendar-window': { algo: 'calendar-window', rate: 7, period: 'minute', retain: '1h' },
  budget: { algo: 'budget', limit: 7, period: 'minute', retain: '1h' },
  'following-window': { algo: 'calendar-window', rate: 7, period: 'day', anchor: () => null, retain: '1h' },
  'plan+calendar-window': {
    algo: 'calendar-window',
    rate: 7,
    period: 'day',
    anchor: '2026-01-31',
    rollover: 0.5,
    retain: '1h',
  },
  'sliding-window': { algo: 'sliding-window', rate: 7, interval: '10s', slices: 20 },
  'sliding-log': { algo: 'sliding-log', rate: 7, interval: '10s' },
  'token-bucket': { algo: 'token-bucket', rate: 14, interval: '10s', refill: 'intervally' },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 14, interval: '10s' },
  gcra: { algo: 'gcra', rate: 14, interval: '10s' },
  concurrency: { algo: 'concurrency', limit: 7, ttl: '10s' },
  'warm-up+token-bucket': { algo: 'token-bucket', rate: 14, interval: '10s', warmUp: { for: '3m', from: 0.3 } },
  'warm-up+gcra': { algo: 'gcra', rate: 14, interval: '10s', warmUp: { for: '3m', from: 0.3 } },
};
/** Options of each feature that has a fragment. */
const featured = { usage: '30d', share: { by: 'global' } };
/** The fragments of algorithms, and of what counts in their place where an option is given, or a function is not asked; before a plus, a variant's. */
const scripts = Object.keys(options);

/** Those that count in one process alone have no twin. */
const names = algorithms.names.filter((name) => algorithms.get(name)!.adapting === undefined);

/** What a script finds in Redis without declaring it. */
const GLOBALS = new Set(
  'ARGV KEYS cjson cmsgpack error ipairs math pairs pcall redis setmetatable string struct table tonumber tostring type unpack'.split(
    ' ',
  ),
);
/** The composed script declares the first two itself; the third one stands for each algorithm that the fast way knows. */
const COMPOSED = ['make_algorithm', 'make_feature', 'algorithm'];
/** The fragments that the fast way uses come before it. */
const HELPERS = 3;

const read = (file: string) => readFileSync(`lua/${file}.lua`, 'utf8');
const order = JSON.parse(readFileSync('lua/fragments.json', 'utf8')) as Record<'shared' | 'driver' | 'plain', string[]>;
const filesOf = (folder: string) => readdirSync(`lua/${folder}`).map((file) => `${folder}/${file.replace('.lua', '')}`);
const algorithmFiles = filesOf('algorithms');
const featureFiles = filesOf('features');
/** In the order in which they are composed. */
const fragments = [
  ...order.shared.slice(0, HELPERS),
  'plain',
  ...order.shared.slice(HELPERS),
  ...algorithmFiles,
  'features',
  ...featureFiles,
  ...order.driver.map((name) => `driver/${name}`),
];

/** What `lua/embed.mjs` takes as it is, beside the composed script. */
const scriptsOfTheirOwn = [
  'console-fold',
  'console-tenants',
  'overrides',
  'region-home',
  'region-index',
  'throttler-hits',
];

/** The names that the first lines of a fragment list. */
function listed(source: string, title: 'Uses' | 'Leaves'): string[] {
  const [, names = ''] = new RegExp(`^-- ${title}:((?: .*\\n)(?:--   .*\\n)*)`, 'm').exec(source) ?? [];
  return names.match(/\w+/g) ?? [];
}

const scriptOf = ({ algorithm }: CompiledLimit) =>
  (algorithm.scriptPrefix ?? '') + (algorithm.script ?? algorithm.name);

/** The files of a script: the algorithm's, and the variant's. */
function filesOfScript(script: string): string[] {
  const [name, variant] = script.split('+').toReversed();
  return [`algorithms/${name!}`, ...(variant === undefined ? [] : [`features/${variant}`])];
}

/** The names of an algorithm's parameters, as its fragment lists them. */
function parametersOf(source: string): string[] {
  const [, names = ''] = /\bparameters = \{(.*)\}/.exec(source) ?? [];
  return [...names.matchAll(/'(\w+)'/g)].map(([, name]) => name!);
}

const headerNames = namesOf(read('header')).left;

describe('fragments of the script', () => {
  it('are all composed', () => {
    const files = readdirSync('lua', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.lua'));
    expect(files.map((file) => file.replace('.lua', '')).toSorted()).toEqual(
      [...fragments, ...scriptsOfTheirOwn].toSorted(),
    );
    const used = new Set(scripts.flatMap(filesOfScript));
    expect(algorithmFiles).toEqual([...used].filter((file) => !featureFiles.includes(file)).toSorted());
    expect(scripts).toEqual(expect.arrayContaining(names));
    for (const name of scripts) expect(scriptOf(compile(options[name]!))).toBe(name);
  });

  it.each(fragments)('%s uses no name that it does not list, besides those of the header', (file) => {
    const source = read(file);
    const free = [...namesOf(source).free].filter((name) => !GLOBALS.has(name) && !headerNames.has(name));
    expect(listed(source, 'Uses')).toEqual(free.toSorted());
  });

  it('leave each name once, before it is used', () => {
    const left = new Set(COMPOSED);
    for (const file of fragments) {
      const source = read(file);
      for (const name of listed(source, 'Uses')) expect([file, name, left.has(name)]).toEqual([file, name, true]);
      for (const name of listed(source, 'Leaves')) {
        expect([file, name, left.has(name)]).toEqual([file, name, false]);
        expect([file, name, namesOf(source).left.has(name)]).toEqual([file, name, true]);
        left.add(name);
      }
    }
    const used = new Set(fragments.flatMap((file) => listed(read(file), 'Uses')));
    expect([...left].filter((name) => !used.has(name))).toEqual([]);
  });

  it('keep to themselves the names that they do not leave', () => {
    const declared = new Map<string, string>();
    for (const file of [...order.shared, 'plain', ...order.driver.map((name) => `driver/${name}`)]) {
      for (const name of namesOf(read(file)).left) {
        expect([file, name, declared.get(name)]).toEqual([file, name, undefined]);
        declared.set(name, file);
      }
    }
  });

  it('are found out by this test where they use a name that nothing declares', () => {
    const source =
      "local a, b = 1, 2\nlocal function f(c, ...)\n  for d = 1, c do e = { g = d, h(a.i) } end\nend\nj, k = '--x', b";
    expect(namesOf(source)).toEqual({ left: new Set(['a', 'b', 'f']), free: new Set(['e', 'h', 'j', 'k']) });
  });
});

describe.each(scripts)('the fragment of %s', (name) => {
  const sources = filesOfScript(name).map(read);
  const source = sources.join('\n');
  const names = sources.flatMap(parametersOf);
  const now = Date.parse('2026-09-21T10:00:00Z') * 1000;
  const { algorithm, parameters } = compile(options[name]!);
  const values = algorithm.scriptParameters(parameters, now);

  it('names each of its parameters', () => {
    expect(names).toHaveLength(values.length);
    expect(new Set(names).size).toBe(names.length);
  });

  it('has them in the order of its twin, where the twin knows the name', () => {
    const { scale, ramp } = parameters as { scale?: object; ramp?: object };
    const known = { ...parameters, ...scale, ...ramp } as Record<string, unknown>;
    for (const [index, each] of names.entries())
      expect([each, known[each] ?? values[index]]).toEqual([each, values[index]]);
  });

  it('reads no parameter by its position, and none that it does not name', () => {
    const core = order.shared.filter((file) =>
      listed(read(file), 'Leaves').some((each) => sources.some((own) => listed(own, 'Uses').includes(each))),
    );
    for (const text of [source, ...core.map(read)]) expect(text).not.toMatch(/\b(?:p|limit|parameters)\[/);
    const used = new Set([...source.matchAll(/\blimit\.(\w+)/g)].map(([, each]) => each!));
    // What every limit has, and the whole of the quota where a part of it is kept.
    const given = ['quota', 'whole', ...names];
    expect([...used].filter((each) => !given.includes(each))).toEqual([]);
  });
});

/** Those of which limits bring values. What decides on a check together is told of the check instead. */
const filesWithParameters = featureFiles.filter(
  (file) => /\bparameters = /.test(read(file)) && !scripts.flatMap(filesOfScript).includes(file),
);

describe.each(filesWithParameters)('the fragment %s', (file) => {
  const name = file.replace('features/', '');
  const isAlone = name === 'regions';
  const terms = { features: featureTerms(isAlone ? { scope: 'world' } : featured, 'test'), featuresOfOptions };
  const held = { ...options['sliding-window'], ...(!isAlone && { hold: '5m' }) } as AlgorithmOptions;
  const { features, parameters } = new CompiledLimit(held, { location: 'test', ...terms });
  const found = features!.find((feature) => feature.name === name);
  if (found === undefined) throw new Error(`${file} has parameters, so \`featured\` needs an example of its option`);
  const { script, variant } = found;

  it('names each value that the feature of its name sends', () => {
    // One that counts by another fragment has its numbers.
    const base = algorithms.get(variant?.script ?? 'sliding-window')!;
    const own = base.scriptParameters(parameters, 0).length;
    const sent = script?.numbers(0) ?? variant!.scriptParameters(parameters, 0).slice(own);
    expect(sent.length).toBeGreaterThan(0);
    expect(parametersOf(read(file))).toHaveLength(sent.length);
  });
});

it('numbers operations as the programs that are sent do', () => {
  const source = read('driver/program');
  const declared = [...source.matchAll(/^local ([A-Z_, ]+) = ([\d, ]+)$/gm)].flatMap(([, names, numbers]) => {
    const values = numbers!.split(', ');
    return names!.split(', ').map((name, index): [string, number] => [name, Number(values[index])]);
  });
  const numbered = new Map(declared);
  expect(Object.fromEntries(Object.keys(operations).map((name) => [name, numbered.get(name)]))).toEqual({
    ...operations,
  });
  expect(new Set(Object.values(operations)).size).toBe(Object.keys(operations).length);
});
