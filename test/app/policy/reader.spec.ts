import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Policy } from '../../../lib/app/config/policy.js';
import { algorithms } from '../../../lib/engine/algorithms/index.js';
import { PlainValue } from '../../../lib/app/policy/located.js';
import { Problems, showProblem } from '../../../lib/app/policy/problems.js';
import { type PolicyReading, readPolicy } from '../../../lib/app/policy/read-policy.js';
import { readText } from '../../../lib/app/policy/read-text.js';
import { policyOptions } from '../../../lib/app/policy/policy-options.js';
import { expectEqual, expectHolds, propertyRuns } from '../../support/limits/property-runs.js';

async function readFile(text: string | Buffer, name = 'limits.yaml'): Promise<PolicyReading> {
  const problems = new Problems();
  return readPolicy(name, await readText(name, Buffer.from(text as string), problems), problems);
}

function readValue(value: unknown): PolicyReading {
  return readPolicy('source()', new PlainValue(value, 'source()'), new Problems());
}

function linesOf(reading: PolicyReading): string[] {
  return 'problems' in reading ? reading.problems.map(showProblem) : [];
}

const NESTED = 'it is not YAML: it is nested more than 64 levels deep';

function policyOf(reading: PolicyReading): Policy {
  if ('problems' in reading) throw new Error(linesOf(reading).join('\n'));
  return reading.policy;
}

describe('a policy in YAML', () => {
  it('may give a ceiling to a limit that is within another one in code', async () => {
    const { limits } = policyOf(
      await readFile('limits: { team: { algo: sliding-log, rate: 10, interval: 1m, ceiling: 20 } }'),
    );
    expect(limits.get('team')!.options).toMatchObject({ ceiling: 20 });
  });

  it('takes a usage that is a duration or an object, and tells what is wrong with one', async () => {
    const text = `
limits:
  tokens: { algo: gcra, rate: 100, interval: 1m, usage: 400d }
  calls: { algo: budget, limit: 100, period: day, usage: { keep: 30d, timezone: Europe/Berlin } }
`;
    const { limits } = policyOf(await readFile(text));
    expect(limits.get('tokens')!.options).toMatchObject({ usage: '400d' });
    expect(limits.get('calls')!.options).toMatchObject({ usage: { keep: '30d', timezone: 'Europe/Berlin' } });
    const wrong = async (limit: string) => linesOf(await readFile(`limits: { a: { ${limit} } }`)).join('\n');
    const gcra = 'algo: gcra, rate: 100, interval: 1m';
    await expect(wrong(`${gcra}, usage: 1h`)).resolves.toMatch(
      /limits\.a\.usage: expected milliseconds or a duration such as '400d'.*received '1h'/,
    );
    await expect(wrong(`${gcra}, usage: { keep: 30d, zone: UTC }`)).resolves.toMatch(
      /unknown option 'zone', expected one of keep, timezone/,
    );
    await expect(wrong(`${gcra}, usage: { timezone: UTC }`)).resolves.toMatch(/limits\.a\.usage/);
    await expect(wrong('algo: concurrency, limit: 5, ttl: 1m, usage: 30d')).resolves.toMatch(
      /'usage' is not for 'concurrency', since its units are given back/,
    );
    const both = `${gcra}, usage: 30d, prefetch: { units: 5, ttl: 1s }`;
    await expect(wrong(both)).resolves.toMatch(/'usage' and 'prefetch' exclude each other/);
  });

  it('is read as a whole', async () => {
    const text = `
# by hand
limits:
  api: { algo: gcra, rate: 100, interval: 1m, key: 'header:x-api-key', nearLimit: 0.5, message: "Slow down" }
  login:
    rate: 5
    mode: off
    prefetch: { units: 10, ttl: 100ms }
  "odd.name 1": { algo: concurrency, limit: 5, ttl: 30000 }
overrides:
  api:
    tenant:acme: { rate: 5_0 }
`.replace('5_0', '50');
    const { limits, overrides } = policyOf(await readFile(text));
    expect([...limits].map(([name, { options, mode, place }]) => [name, options, mode, place])).toEqual([
      [
        'api',
        { algo: 'gcra', rate: 100, interval: '1m', key: 'header:x-api-key', nearLimit: 0.5, message: 'Slow down' },
        undefined,
        'limits.yaml:4:3 limits.api',
      ],
      ['login', { rate: 5, prefetch: { units: 10, ttl: '100ms' } }, 'off', 'limits.yaml:5:3 limits.login'],
      ['odd.name 1', { algo: 'concurrency', limit: 5, ttl: 30_000 }, undefined, "limits.yaml:9:3 limits['odd.name 1']"],
    ]);
    expect(overrides).toEqual([
      {
        limit: 'api',
        key: 'tenant:acme',
        patch: { rate: 50 },
        mode: undefined,
        place: "limits.yaml:12:5 overrides.api['tenant:acme']",
      },
    ]);
  });

  it('reads blocks of several steps, and candidates', async () => {
    const text = `
limits:
  login:
    blockFor:
      - 1m
      - 600000
      - 10m
    forgetAfter: 7d
    candidate: { rate: 3 }
  forgets: { forgetAfter: 1d }
  strict: { algo: fixed-window, rate: 60, interval: 1m, candidate: null }
  both: { algo: fixed-window, rate: 60, interval: 1m, candidate: { algo: gcra, burst: 10 } }
overrides:
  login:
    acme: { candidate: { rate: 9 } }
    other: { rate: 5, candidate: null }
`;
    const { limits, overrides } = policyOf(await readFile(text));
    expect([...limits].map(([, { options }]) => options)).toEqual([
      { blockFor: ['1m', 600_000, '10m'], forgetAfter: '7d', candidate: { rate: 3 } },
      { forgetAfter: '1d' },
      { algo: 'fixed-window', rate: 60, interval: '1m' },
      { algo: 'fixed-window', rate: 60, interval: '1m', candidate: { algo: 'gcra', burst: 10 } },
    ]);
    expect(overrides.map(({ patch }) => patch)).toEqual([{ candidate: { rate: 9 } }, { rate: 5, candidate: null }]);
  });

  it('reads lists, and of an entry that stands there twice the last', async () => {
    const text = `
lists:
  deny:
    - { ip: 10.0.0.0/8, reason: one }
    - { ip: '::ffff:10.0.0.0/104', reason: two }
  allow:
    - { pattern: 'tenant:*', limit: api }
`;
    expect(policyOf(await readFile(text)).lists).toEqual([
      { list: 'deny', key: 'ip:10.0.0.0/8', limit: '', reason: 'two', place: 'limits.yaml:5:7 lists.deny[1]' },
      {
        list: 'allow',
        key: 'key:tenant:*',
        limit: 'api',
        reason: undefined,
        place: 'limits.yaml:7:7 lists.allow[0]',
      },
    ]);
  });

  it('reads a folded reason as one line', async () => {
    const text = 'lists:\n  deny:\n    - identity: a\n      reason: >\n        scraping,\n        again\n';
    expect(policyOf(await readFile(text)).lists).toMatchObject([{ reason: 'scraping, again' }]);
  });

  it('has empty sections, as when the last line of one was taken out', async () => {
    expect(policyOf(await readFile('limits:\noverrides:\nlists:\n'))).toMatchObject({ overrides: [], lists: [] });
    expect(policyOf(await readFile('lists:\n  allow:\n  deny: []\n'))).toMatchObject({ lists: [] });
  });

  it.each([
    ['no policy', '', "limits.yaml: it is empty, expected an object of 'limits', 'overrides' and 'lists'"],
    [
      'a comment alone',
      '# nothing\n',
      "limits.yaml: it is empty, expected an object of 'limits', 'overrides' and 'lists'",
    ],
    ['a list', '- 1', 'limits.yaml:1:1: expected an object of limits, overrides and lists, received a list'],
    ['a number', '5', 'limits.yaml:1:1: expected an object of limits, overrides and lists, received 5'],
    ['no YAML', 'limits:\n  a: {', 'limits.yaml:2:7: it is not YAML: '],
    ['tabs', 'limits:\n\ta: 1', 'limits.yaml:2:1: it is not YAML: '],
    [
      'two documents',
      'limits: {}\n---\nlimits: {}',
      'limits.yaml:2:1: it is not YAML: Source contains multiple documents',
    ],
    [
      'an unknown section',
      'limits: {}\nlimts: {}',
      "limits.yaml:2:1 limts: unknown option 'limts'. Did you mean 'limits'?",
    ],
    [
      'a section that is a list',
      'limits: []',
      'limits.yaml:1:9 limits: expected an object of limits by their names, received a list',
    ],
    [
      'overrides that are a list',
      'overrides: []',
      'limits.yaml:1:12 overrides: expected an object of overrides by the names of their limits, received a list',
    ],
    [
      'a limit that is a text',
      'limits: { api: fast }',
      "limits.yaml:1:16 limits.api: expected a limit such as { algo: 'gcra', rate: 10, interval: '1s' }, received 'fast'",
    ],
    [
      'a limit that is nothing',
      'limits:\n  api:',
      "limits.yaml:2:7 limits.api: expected a limit such as { algo: 'gcra', rate: 10, interval: '1s' }, received null",
    ],
    ['an empty limit', 'limits: { api: {} }', 'limits.yaml:1:11 limits.api: it is empty, expected at least one option'],
    ['a section twice', 'limits: {}\nlimits: {}', "limits.yaml:2:1 limits: 'limits' appears twice. Keep one"],
    ['a limit twice', 'limits:\n  a: { rate: 1 }\n  a: { rate: 2 }', "limits.yaml:3:3 limits.a: 'a' appears twice"],
    ['an option twice', 'limits: { a: { rate: 1, rate: 2 } }', "limits.yaml:1:25 limits.a.rate: 'rate' appears twice"],
    [
      'a key twice',
      'overrides: { a: { k: { rate: 1 }, k: { rate: 2 } } }',
      "limits.yaml:1:35 overrides.a.k: 'k' appears twice",
    ],
    [
      'an unknown option',
      'limits: { a: { reat: 1 } }',
      "limits.yaml:1:16 limits.a.reat: unknown option 'reat'. Did you mean 'rate'?",
    ],
    ['a function option', 'limits: { a: { skip: 1 } }', "limits.yaml:1:16 limits.a.skip: unknown option 'skip'"],
    ['a name as an option', 'limits: { a: { name: b } }', "limits.yaml:1:16 limits.a.name: unknown option 'name'"],
    [
      'a number as text',
      'limits: { a: { rate: "5" } }',
      "limits.yaml:1:22 limits.a.rate: expected a whole number >= 1, received '5'",
    ],
    [
      'a fraction',
      'limits: { a: { rate: 1.5 } }',
      'limits.yaml:1:22 limits.a.rate: expected a whole number >= 1, received 1.5',
    ],
    [
      'a number with separators',
      'limits: { a: { rate: 1_000 } }',
      "limits.a.rate: expected a whole number >= 1, received '1_000'",
    ],
    [
      'a number too large to count',
      'limits: { a: { rate: 9007199254740993 } }',
      'limits.a.rate: expected a whole number >= 1, received 9007199254740992',
    ],
    ['infinity', 'limits: { a: { rate: .inf } }', 'limits.a.rate: expected a whole number >= 1, received Infinity'],
    [
      'no value',
      'limits:\n  a:\n    rate:\n',
      'limits.yaml:3:10 limits.a.rate: expected a whole number >= 1, received null',
    ],
    [
      'an object as a value',
      'limits: { a: { rate: { x: 1 } } }',
      'limits.a.rate: expected a whole number >= 1, received an object',
    ],
    [
      'a wrong duration',
      'limits: { a: { interval: 1 fortnight } }',
      /limits\.a\.interval: expected milliseconds.+, received '1 fortnight'/,
    ],
    [
      'a duration too long',
      'limits: { a: { interval: 2y } }',
      /limits\.a\.interval: expected milliseconds.+, received '2y'/,
    ],
    [
      'an unknown algorithm',
      'limits: { a: { algo: gcar } }',
      /limits\.yaml:1:22 limits\.a\.algo: expected one of fixed-window.+, received 'gcar'/,
    ],
    [
      'an option of another algorithm',
      'limits: { a: { algo: gcra, rate: 1, interval: 1s, queue: 2 } }',
      "limits.yaml:1:51 limits.a.queue: option 'queue' is not an option of 'gcra': it belongs to leaky-bucket",
    ],
    [
      'options of several algorithms',
      'limits: { a: { burst: 1, queue: 2 } }',
      "limits.yaml:1:11 limits.a: no algorithm has all of the options 'burst' and 'queue'",
    ],
    [
      'an option missing',
      'limits: { a: { algo: gcra, rate: 1 } }',
      'limits.yaml:1:11 limits.a.interval: missing, expected milliseconds',
    ],
    [
      'options that cannot be counted',
      'limits: { a: { algo: gcra, rate: 9007199254740991, interval: 365d } }',
      "limits.yaml:1:11 limits.a: a 'rate' of ",
    ],
    [
      'a wrong key',
      'limits: { a: { key: usr } }',
      "limits.a.key: expected 'ip', 'user', 'global' or 'header:<name>', received 'usr'",
    ],
    [
      'a wrong time zone',
      'limits: { a: { timezone: Europe/Bonn } }',
      "limits.a.timezone: expected an IANA time zone such as 'UTC' or 'Europe/Berlin', received 'Europe/Bonn'",
    ],
    [
      'a wrong share',
      'limits: { a: { nearLimit: 2 } }',
      'limits.a.nearLimit: expected a number > 0 and <= 1, received 2',
    ],
    ['yes', 'limits: { a: { perRoute: yes } }', "limits.a.perRoute: expected true or false, received 'yes'"],
    ['half a prefetch', 'limits: { a: { prefetch: { units: 5 } } }', 'limits.a.prefetch.ttl: missing'],
    [
      'a prefetch of a number',
      'limits: { a: { prefetch: 5 } }',
      "limits.a.prefetch: expected { units, ttl } such as { units: 100, ttl: '100ms' }, received 5",
    ],
    [
      'an unknown option of prefetch',
      'limits: { a: { prefetch: { units: 5, ttl: 1s, x: 1 } } }',
      "limits.a.prefetch.x: unknown option 'x'",
    ],
    [
      'what prefetch excludes',
      'limits: { a: { algo: gcra, rate: 50, interval: 1s, blockFor: 1m, prefetch: { units: 5, ttl: 10ms } } }',
      "limits.a: options 'prefetch' and 'blockFor' exclude each other",
    ],
    [
      'no steps of blocks',
      'limits: { a: { blockFor: [] } }',
      /limits\.yaml:1:26 limits\.a\.blockFor: expected a.+, received a list/,
    ],
    [
      'steps of blocks that become shorter',
      'limits:\n  a:\n    blockFor: [1m, 30s]',
      "limits.yaml:3:15 limits.a.blockFor: expected a duration of more than 0 and at most 1 year, or 1 to 100 durations such as ['1m', '10m', '1h'], each at least as long as the one before, received a list",
    ],
    [
      'a wrong step of blocks',
      'limits: { a: { blockFor: [1m, often] } }',
      /limits\.yaml:1:31 limits\.a\.blockFor\[1\]: expected milliseconds or a duration.+, received 'often'/,
    ],
    [
      'a list of lists as blocks',
      'limits: { a: { blockFor: [[1m]] } }',
      /limits\.yaml:1:27 limits\.a\.blockFor\[0\]: expected milliseconds.+, received a list/,
    ],
    [
      'an object as blocks',
      'limits: { a: { blockFor: { 1m: 1 } } }',
      /limits\.yaml:1:26 limits\.a\.blockFor: expected a duration of more than 0 and at most 1 year, or 1 to 100.+, received an object/,
    ],
    [
      'nothing to forget',
      'limits: { a: { blockFor: 1m, forgetAfter: 1d } }',
      "limits.yaml:1:11 limits.a.forgetAfter: expected nothing, unless 'blockFor' is a list of durations, received '1d'",
    ],
    [
      'a wrong time to forget',
      'limits: { a: { forgetAfter: 0 } }',
      /limits\.yaml:1:29 limits\.a\.forgetAfter: expected .+, received 0/,
    ],
    [
      'a wrong option of a candidate',
      'limits:\n  api:\n    candidate: { rate: -1 }',
      'limits.yaml:3:24 limits.api.candidate.rate: expected a whole number >= 1, received -1',
    ],
    [
      'an empty candidate',
      'limits: { a: { candidate: {} } }',
      /limits\.a\.candidate: expected an object of.+, received an object/,
    ],
    [
      'a number as a candidate',
      'limits: { a: { candidate: 60 } }',
      /limits\.yaml:1:27 limits\.a\.candidate: expected .+, received 60/,
    ],
    [
      'a list as a candidate',
      'limits: { a: { candidate: [] } }',
      /limits\.yaml:1:27 limits\.a\.candidate: expected .+, received a list/,
    ],
    [
      'what a candidate has in common with its limit',
      'limits: { a: { candidate: { key: ip } } }',
      "limits.yaml:1:29 limits.a.candidate.key: unknown option 'key'",
    ],
    [
      'options of several algorithms in a candidate',
      'limits: { a: { candidate: { queue: 1, burst: 2 } } }',
      "limits.yaml:1:16 limits.a.candidate: no algorithm has all of the options 'queue' and 'burst'",
    ],
    [
      'an option in a candidate that the algorithm of its limit does not have',
      'limits: { a: { algo: gcra, rate: 1, interval: 1s, candidate: { queue: 1 } } }',
      "limits.yaml:1:64 limits.a.candidate.queue: option 'queue' is not an option of 'gcra': it belongs to leaky-bucket",
    ],
    [
      'an option in a candidate that its own algorithm does not have',
      'limits: { a: { candidate: { algo: fixed-window, burst: 1 } } }',
      "limits.yaml:1:49 limits.a.candidate.burst: option 'burst' is not an option of 'fixed-window'",
    ],
    [
      'a candidate that lacks an option',
      'limits: { a: { algo: gcra, rate: 1, interval: 1s, candidate: { algo: calendar-window } } }',
      'limits.yaml:1:51 limits.a.candidate.period: missing, expected one of second, minute, hour, day, week, month, quarter, year',
    ],
    [
      'a candidate that holds beside a limit that does not',
      'limits: { a: { algo: gcra, rate: 1, interval: 1s, candidate: { algo: concurrency, limit: 5, ttl: 1s } } }',
      "limits.yaml:1:51 limits.a.candidate.algo: the limit has 'gcra' and its candidate 'concurrency'. Use 'concurrency' for both or for none",
    ],
    [
      'a candidate beside a prefetch',
      'limits: { a: { algo: gcra, rate: 90, interval: 1s, prefetch: { units: 2, ttl: 10ms }, candidate: { rate: 80 } } }',
      "limits.yaml:1:87 limits.a.candidate: options 'candidate' and 'prefetch' exclude each other",
    ],
    [
      'an override whose candidate cannot be',
      'limits: { a: { algo: gcra, rate: 1, interval: 1s } }\noverrides: { a: { k: { candidate: { slices: 5 } } } }',
      "limits.yaml:2:37 overrides.a.k.candidate.slices: option 'slices' is not an option of 'gcra'",
    ],
    [
      'an override of a limit beside whose rate its candidate cannot be counted',
      'limits: { a: { algo: gcra, rate: 1, interval: 1s } }\n' +
        'overrides: { a: { k: { candidate: { rate: 9007199254740991, interval: 365d } } } }',
      "limits.yaml:2:24 overrides.a.k.candidate: a 'rate' of 9007199254740991 with an 'interval' of 31536000000 ms and a 'burst' (or 'queue') of 9007199254740991 cannot be counted exactly in whole numbers below 2^53. Use a rounder or smaller 'rate', a shorter 'interval' or a smaller 'burst'",
    ],
    [
      'lists that are a list',
      'lists: []',
      "limits.yaml:1:8 lists: expected an object of the lists 'allow' and 'deny', received a list",
    ],
    [
      'an unknown list',
      'lists: { dany: [] }',
      "limits.yaml:1:10 lists.dany: unknown option 'dany'. Did you mean 'deny'?",
    ],
    ['the status of lists', 'lists: { status: 429 }', "lists.status: unknown option 'status'"],
    [
      'a list that is an entry',
      'lists: { deny: { ip: ::1 } }',
      'limits.yaml:1:16 lists.deny: expected a list of entries, received an object',
    ],
    [
      'a text on a list',
      'lists: { deny: [10.0.0.1] }',
      /limits\.yaml:1:17 lists\.deny\[0\]: expected one of \{.+, received '10\.0\.0\.1'/,
    ],
    [
      'an entry that names nobody',
      'lists: { deny: [{ limit: a }] }',
      /limits\.yaml:1:17 lists\.deny\[0\]: expected .+, received an object/,
    ],
    [
      'an entry that names two',
      "lists: { deny: [{ ip: '::1', identity: a }] }",
      /limits\.yaml:1:17 lists\.deny\[0\]: expected one of \{ ip:.+, received an object/,
    ],
    [
      'an unknown option of an entry',
      "lists: { deny: [{ ip: '::1', expiresIn: 1h }] }",
      "limits.yaml:1:30 lists.deny[0].expiresIn: unknown option 'expiresIn'",
    ],
    [
      'no address',
      'lists: { allow: [{ ip: 10.0.0 }] }',
      /limits\.yaml:1:24 lists\.allow\[0\]\.ip: expected an IP address.+, received '10\.0\.0'/,
    ],
    [
      'a list as an address',
      'lists: { allow: [{ ip: [] }] }',
      /limits\.yaml:1:24 lists\.allow\[0\]\.ip: expected an IP.+, received a list/,
    ],
    [
      'a pattern as an identity',
      "lists: { deny: [{ identity: 't:*' }] }",
      /limits\.yaml:1:29 lists\.deny\[0\]\.identity: expected the key of one identity.+, received 't:\*'/,
    ],
    [
      'an identity as a pattern',
      'lists: { deny: [{ pattern: t }] }',
      /lists\.deny\[0\]\.pattern: expected the beginning.+, received 't'/,
    ],
    [
      'no reason',
      "lists: { deny: [{ identity: a, reason: '' }] }",
      /lists\.deny\[0\]\.reason: expected a string of 1 to.+, received ''/,
    ],
    [
      'a reason of two lines',
      'lists: { deny: [{ identity: a, reason: "abuse\\nERROR" }] }',
      /lists\.deny\[0\]\.reason: expected a string of 1 to 200 characters on one line.+, received 'abuse\\nERROR'/,
    ],
    [
      'a number as a limit',
      'lists: { deny: [{ identity: a, limit: 5 }] }',
      "lists.deny[0].limit: expected a limit's name: 1 to 128 printable ASCII characters, received 5",
    ],
    [
      'an entry on both lists',
      "lists:\n  allow: [{ ip: '10.0.0.1' }]\n  deny: [{ ip: '::ffff:10.0.0.1' }]",
      'limits.yaml:3:10 lists.deny[0]: the same entry is also in limits.yaml:2:11 lists.allow[0]. Keep it on one',
    ],
    [
      'a name that no header can hold',
      'limits: { "a\\u00e4": { rate: 1 } }',
      "expected 1 to 128 printable ASCII characters, received the name 'aä'",
    ],
    [
      'a number as a name',
      'limits: { 5: { rate: 1 } }',
      'limits.yaml:1:11 limits: expected a text as a name, in quotes',
    ],
    ['an object as a name', 'limits: { {a: 1}: { rate: 1 } }', 'limits.yaml:1:11 limits: expected a text as a name'],
    [
      'an anchor',
      'limits: { a: &x { rate: 1 } }',
      'limits.yaml:1:17 limits.a: anchors and aliases are not supported. Write the value itself',
    ],
    ['an alias', 'limits: { b: *x }', 'limits.yaml:1:14 '],
    [
      'a merge key',
      'limits: { a: { <<: { rate: 1 }, burst: 2 } }',
      "limits.yaml:1:16 limits.a['<<']: unknown option '<<'",
    ],
    [
      'a tag',
      'limits: { a: { rate: !!int "5" } }',
      "limits.a.rate: the tag 'tag:yaml.org,2002:int' is not supported. Write plain values",
    ],
    [
      'an unknown tag',
      'limits: !policy {}',
      "limits.yaml:1:17 limits: the tag '!policy' is not supported. Write plain values",
    ],
    [
      '__proto__ as an option',
      'limits: { a: { __proto__: { rate: 1 } } }',
      "limits.a.__proto__: unknown option '__proto__'",
    ],
    [
      'constructor as an option',
      'limits: { a: { constructor: 1 } }',
      "limits.a.constructor: unknown option 'constructor'",
    ],
    [
      'a star alone as a key',
      'overrides: { a: { "*": { rate: 1 } } }',
      "overrides.a['*']: expected the key of one identity such as 'tenant:acme', or the beginning of keys with a star at the end such as 'tenant:*', of at most 512 characters, received the key '*'",
    ],
    [
      'a star within a key',
      'overrides: { a: { "a*b": { rate: 1 } } }',
      "limits.yaml:1:19 overrides.a['a*b']: expected the key of one identity such as 'tenant:acme', or the beginning of keys with a star at the end such as 'tenant:*', of at most 512 characters, received the key 'a*b'",
    ],
    [
      'an override of what cannot change',
      'overrides: { a: { k: { key: ip } } }',
      "overrides.a.k.key: unknown option 'key'",
    ],
    [
      'an override that says nothing',
      'overrides: { a: { k: {} } }',
      'overrides.a.k: it is empty, expected at least one',
    ],
    [
      'an override of another algorithm',
      'limits: { a: { algo: gcra, rate: 1, interval: 1s } }\noverrides: { a: { k: { queue: 1 } } }',
      "limits.yaml:2:24 overrides.a.k.queue: option 'queue' is not an option of 'gcra'",
    ],
    [
      'an override that cannot be counted',
      'limits: { a: { algo: gcra, rate: 1, interval: 365d } }\noverrides: { a: { k: { rate: 9007199254740991 } } }',
      "limits.yaml:2:19 overrides.a.k: a 'rate' of ",
    ],
  ])('is refused with %s', async (_, text, line) => {
    const expected = typeof line === 'string' ? expect.stringContaining(line) : expect.stringMatching(line);
    expect(linesOf(await readFile(text))).toEqual([expected]);
  });

  it('tells all mistakes, in the order of their lines', async () => {
    const text = 'overrides: { a: { k: 1 } }\nlimits:\n  b: { rate: 0 }\n  a: { rate: 0, burst: 0 }\nx: 1';
    expect(linesOf(await readFile(text)).map((line) => line.split(': ')[0])).toEqual([
      'limits.yaml:1:22 overrides.a.k',
      'limits.yaml:3:14 limits.b.rate',
      'limits.yaml:4:14 limits.a.rate',
      'limits.yaml:4:24 limits.a.burst',
      'limits.yaml:5:1 x',
    ]);
  });

  it('tells a hundred mistakes at most', async () => {
    const limits = Array.from({ length: 500 }, (_, index) => `  l${index}: { rate: 0 }\n`);
    expect(linesOf(await readFile(`limits:\n${limits.join('')}`))).toHaveLength(100);
  });

  it.each([
    ['is too large', Buffer.alloc(600_000, 'a'), 'limits.yaml: it has more than 524288 bytes'],
    ['is no text', Buffer.from([0x6c, 0xff, 0xfe]), 'limits.yaml: it is not UTF-8 text'],
    ['is nested without end', Buffer.from('['.repeat(100_000)), NESTED],
    ['is nested as deeply, and ends', Buffer.from('['.repeat(100_000) + ']'.repeat(100_000)), NESTED],
    ['is nested in dashes', Buffer.from('- '.repeat(100_000)), NESTED],
    ['is nested in names', Buffer.from('? '.repeat(100_000)), NESTED],
    ['is JSON and nested', Buffer.from('{"a":'.repeat(50_000) + '1' + '}'.repeat(50_000)), NESTED],
  ])('that %s is refused', async (_, bytes, line) => {
    expect(linesOf(await readFile(bytes))).toEqual([expect.stringContaining(line)]);
  });

  it('is not expanded by aliases', async () => {
    const levels = Array.from({ length: 30 }, (_, index) => `l${index + 1}: &l${index + 1} [*l${index}, *l${index}]`);
    const lines = linesOf(await readFile(`l0: &l0 [x, x]\n${levels.join('\n')}\nlimits: *l30`));
    expect(lines).toContainEqual(
      expect.stringContaining('limits.yaml:32:9 limits: anchors and aliases are not supported'),
    );
  });

  it('may name a limit as every object names a property', async () => {
    const { limits } = policyOf(await readFile('limits: { __proto__: { rate: 1 }, constructor: { rate: 2 } }'));
    expect([...limits.keys()]).toEqual(['__proto__', 'constructor']);
    expect(({} as { rate?: number }).rate).toBeUndefined();
  });
});

describe('a policy in JSON', () => {
  it.each([
    ['with comments', '{\n  // limits\n  "limits": {} }', 'limits.json:2:'],
    ['with a comma too many', '{\n  "limits": {},\n}', 'limits.json:3:1: it is not JSON: '],
    ['without quotes', '{ limits: {} }', 'limits.json:1:3: it is not JSON: '],
    ['that is YAML', 'limits: {}', 'limits.json:1:1: it is not JSON: expected objects in braces'],
    ['with other quotes', "{\n 'limits': {} }", 'limits.json:2:2: it is not JSON: expected'],
    ['with a text without quotes', '{"limits":{"a":{"algo":gcra}}}', 'limits.json:1:24: it is not JSON: expected'],
    ['with another number', '{"limits":{"a":{"rate":0x10}}}', 'limits.json:1:25: it is not JSON: '],
    ['that ends too early', '{ "limits": {', 'limits.json:1:14: it is not YAML: '],
    ['with a name twice', '{ "limits": {},\n "limits": {} }', "limits.json:2:2 limits: 'limits' appears twice"],
    [
      'with a wrong value',
      '{\n\t"limits": { "a": { "rate": -1 } }\n}',
      'limits.json:2:29 limits.a.rate: expected a whole number >= 1, received -1',
    ],
  ])('is refused %s', async (_, text, line) => {
    expect(linesOf(await readFile(text, 'limits.json'))).toEqual([expect.stringContaining(line)]);
  });
});

describe('any object', () => {
  const value = fc.oneof(
    fc.constantFrom<unknown>(1, 5, 0, -1, 1.5, '1m', '10s', '', 'gcra', 'ip', 'shadow', true, null, undefined, NaN),
    fc.constantFrom<unknown>(
      [],
      ['1m'],
      ['1s', 5],
      { rate: 5 },
      { algo: 'gcra', rate: 5 },
      {},
      new Map(),
      new Date(0),
      () => 1,
      Symbol('x'),
      5n,
    ),
    fc.anything(),
  );
  const options = fc.constantFrom(...Object.keys(policyOptions), 'skip', '__proto__');
  const right = fc.record({
    algo: fc.constant('gcra'),
    rate: fc.integer({ min: 1, max: 1000 }),
    interval: fc.constant('1m'),
  });
  const limit = fc.oneof(
    right,
    fc.dictionary(options, value),
    fc.tuple(right, fc.dictionary(options, value)).map(([one, two]) => ({ ...one, ...two })),
    value,
  );
  const limits = fc.oneof(fc.dictionary(fc.constantFrom('a', 'b', 'ä', ''), limit), value);
  const overrides = fc.oneof(
    fc.dictionary(fc.constantFrom('a', 'b'), fc.oneof(fc.dictionary(fc.constantFrom('k', 't:*', '*'), limit), value)),
    value,
  );
  const entry = fc.dictionary(
    fc.constantFrom('ip', 'identity', 'pattern', 'limit', 'reason', 'x'),
    fc.oneof(fc.constantFrom<unknown>('10.0.0.0/8', '::1', 'a', 't:*', null, ''), value),
  );
  const lists = fc.oneof(fc.dictionary(fc.constantFrom('allow', 'deny'), fc.oneof(fc.array(entry), value)), value);
  const said = fc.record({ rate: fc.integer({ min: 1, max: 1000 }), mode: fc.constantFrom('off', 'shadow') });
  const rightPolicy = fc.record({
    limits: fc.dictionary(fc.constantFrom('a', 'b'), right),
    overrides: fc.dictionary(fc.constantFrom('a', 'b'), fc.dictionary(fc.constantFrom('k', 't:*'), said)),
  });
  const policy = fc.oneof(rightPolicy, fc.record({ limits, overrides, lists }, { requiredKeys: [] }), fc.anything());

  it('is refused with a place, or holds as a whole', () => {
    let taken = 0;
    fc.assert(
      fc.property(policy, (value) => {
        const reading = readValue(value);
        if ('problems' in reading) {
          const lines = linesOf(reading);
          expectHolds(lines, {
            'names a problem': reading.problems.length > 0,
            'names a place in each line': lines.every((line) => /^source\(\)( [\s\S]+?)?: \S[\s\S]*/.test(line)),
          });
          return;
        }
        taken++;
        const written = value as Record<
          'limits' | 'overrides',
          Record<string, Record<string, unknown>> | null | undefined
        >;
        const { limits: read, overrides: keys } = reading.policy;
        const wholes = [...read].map(([name, { options: own, mode }]) => [name, { ...own, ...(mode && { mode }) }]);
        // A candidate that is not wanted is none.
        const defined = Object.entries(written.limits ?? {}).filter(([, each]) => each !== undefined);
        const given = defined.map(([name, { candidate, ...own }]) => [
          name,
          { ...own, candidate: candidate ?? undefined },
        ]);
        expectEqual(Object.fromEntries(wholes), Object.fromEntries(given));
        const numbers = Object.values(written.overrides ?? {}).map(
          (each) => Object.values(each ?? {}).filter((override) => override !== undefined).length,
        );
        expect(keys).toHaveLength(numbers.reduce((sum, count) => sum + count, 0));
        for (const { options: own } of read.values()) {
          if (own.algo !== undefined) expect(algorithms.names).toContain(own.algo);
        }
      }),
      { numRuns: propertyRuns(2000) },
    );
    expect(taken).toBeGreaterThan(100);
  });
});

const read = (options: string) => readFile(`limits: { a: { ${options} } }`);

it('reads objects of names from a file, with the place of what is wrong in them', async () => {
  const adaptive = 'algo: adaptive, scope: instance';
  const gpu = 'algo: gcra, rate: 5, interval: 1s';
  const shares = { sheddable: 0.5 };
  const share = { by: 'header:x-t', weight: { acme: 3, 'a b': 1 } };
  for (const [text, option] of [
    [`${adaptive}, shares: { sheddable: 0.5 }`, { shares }],
    [`${gpu}, share: { by: 'header:x-t', weight: { acme: 3, a b: 1 } }`, { share }],
  ] as const) {
    expect(policyOf(await read(text)).limits.get('a')?.options).toMatchObject(option);
  }
  expect(linesOf(await read(`${adaptive}, shares: { critical: 0.5 }`))).toEqual([
    expect.stringContaining("limits.a.shares.critical: unknown option 'critical'"),
  ]);
  expect(linesOf(await read(`${gpu}, share: { by: user, weight: { 'user:1': 0 } }`))).toEqual([
    expect.stringContaining("limits.a.share.weight['user:1']: expected a whole number >= 1 and <= 1000000, received 0"),
  ]);
});
