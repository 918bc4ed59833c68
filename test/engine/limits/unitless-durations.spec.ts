import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import {
  type LimitResolver,
  RateLimitArgumentError,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { runHere } from '../../cli/run-program.js';
import { readJobOptions } from '../../../lib/integrations/bullmq/job-limit-options.js';
import { readOptions as readOutbound } from '../../../lib/integrations/outbound/outbound-options.js';
import { readLimit } from '../../../lib/cli/limit-spec.js';
import { asRecord } from '../../../lib/app/overrides/override-record.js';
import { TestClock } from '../../../lib/testing/index.js';
import { Test } from '@nestjs/testing';

/** Also `M`, the month of date formats, which would be read as minutes. */
const UNITLESS = ['60', '1000', ' 60 ', '0.5', '1e3', '60 ', '.5', '1M', '3 M', '.5M'];

const MONTH = "'1m' for a minute, and for a month '30d' or the algorithm 'calendar-window' with period: 'month'";

const start = (options: RateLimitModuleOptions) =>
  Test.createTestingModule({ imports: [RateLimitModule.forRoot(options)] })
    .compile()
    .then((app) => app.init());

const limit = { algo: 'gcra', rate: 1, interval: '1s' } as const;

describe.each(UNITLESS)('the duration %j, which has no unit that is known', (text) => {
  it.each<[string, RateLimitModuleOptions]>([
    ['interval', { limits: [{ ...limit, interval: text }] }],
    ['interval', { define: { api: { ...limit, interval: text } } }],
    ['blockFor', { limits: [{ ...limit, blockFor: text }] }],
    ['blockFor', { defaults: { blockFor: ['1m', text] } }],
    ['forgetAfter', { limits: [{ ...limit, blockFor: ['1m', '2m'], forgetAfter: text }] }],
    ['timeout', { timeout: text }],
    ['resolveTimeout', { resolveTimeout: text }],
    ['gather', { gather: text }],
    ['sendTimeout', { sendTimeout: text }],
    ['ttl', { limits: [{ ...limit, prefetch: { units: 2, ttl: text } }], redis: 'redis://127.0.0.1:1' }],
    ['keep', { limits: [{ ...limit, usage: { keep: text } }] }],
    ['usage', { limits: [{ ...limit, usage: text }] }],
    ['ttl', { limits: [{ name: 'slots', algo: 'concurrency', limit: 1, ttl: text }] }],
    ['timeout', { policy: { source: () => ({}), timeout: text } }],
    ['every', { policy: { source: () => ({}), watch: true, every: text } }],
  ])('is refused as %s', async (option, options) => {
    const refused = expect(start(options)).rejects;
    await refused.toThrow(new RegExp(`${option}(\\[1\\])?: expected .*, received .*${text.replace('.', '\\.')}.*`));
  });

  it('is refused in calls', () => {
    expect(() => new TestClock().advance(text)).toThrow(
      new RateLimitArgumentError(
        `duration: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), at most 1 year` +
          `, received '${text}'; write ${text.endsWith('M') ? MONTH : `'${text.trim()}s' for seconds, or '${text.trim()}ms' for milliseconds`}`,
      ),
    );
  });

  it('is refused as the time that answers of a LimitResolver apply', async () => {
    @Injectable()
    class Plans implements LimitResolver {
      readonly ttl = text;
      resolve = () => limit;
    }
    const refused = expect(start({ limits: [Plans] })).rejects;
    await refused.toThrow(`Plans.ttl: expected a duration such as '1m', more than 0, received '${text}'`);
  });

  it.each(['timeout', 'ageing', 'maxLearnedWait'])('is refused as %s of calls to others', (option) => {
    expect(() => readOutbound({ [option]: text }, 'fetch')).toThrow(
      new RegExp(`${option}: expected .+, received '${text.replace('.', '\\.')}'`),
    );
  });

  it.each(['recheck', 'keepFor'])('is refused as %s of jobs', (option) => {
    expect(() => readJobOptions({ key: 'a', [option]: text }, 'Jobs')).toThrow(
      new RegExp(`${option}: expected .+, received '${text.replace('.', '\\.')}'`),
    );
  });

  it('is refused by commands', async () => {
    const limited = ['--limit', 'gcra:1/1s'];
    const place = ['--redis', 'redis://localhost', '--name', 'a', '--key', 'a'];
    const wrong: [option: string, args: string[]][] = [
      ['for', ['simulate', ...limited, '--generate', 'poisson:1/s', '--for', text]],
      ['reorder', ['simulate', ...limited, '--reorder', text, 'log']],
      ['timeout', ['explain', ...limited, ...place, '--timeout', text]],
    ];
    for (const [option, args] of wrong) {
      const { code, stderr } = await runHere(args);
      expect([option, code]).toEqual([option, 2]);
      expect(stderr).toContain(`--${option}: expected `);
    }
  });

  it('matches no duration of the JSON Schema', () => {
    const schema = readFileSync('limits.schema.json', 'utf8');
    const patterns = [...schema.matchAll(/"pattern": "(\^\[\+\][^"]*)"/g)].map(([, pattern]) => new RegExp(pattern!));
    expect(patterns.length).toBeGreaterThan(0);
    expect(patterns.filter((pattern) => pattern.test(text))).toEqual([]);
    expect(patterns.every((pattern) => pattern.test('60s') && pattern.test('1.5 hours'))).toBe(true);
  });
});

it.each(['fixed-window:3/250', 'fixed-window:3/1m,blockFor=60', 'fixed-window:3/1m,blockFor=1m/60'])(
  'the limit %s of a command line is refused',
  (spec) => {
    expect(() => readLimit(spec)).toThrow(/: expected .*duration.* such as/);
  },
);

it('keeps what overrides of an earlier release mean', () => {
  const others = { version: 1, generation: 0, inherit: 'keep', expiresAt: null, quota: 5, previousQuota: 5 };
  const patchOf = (patch: object) => (asRecord({ ...others, patch }) as { patch?: unknown }).patch;
  expect(patchOf({ rate: 5, interval: '1000' })).toEqual({ rate: 5, interval: 1000 });
  expect(patchOf({ rate: 5, interval: '2M' })).toEqual({ rate: 5, interval: '2m' });
  expect(patchOf({ rate: 5, interval: '1s' })).toEqual({ rate: 5, interval: '1s' });
});

const AT = ['--redis', 'redis://localhost', '--name', 'a', '--key', 'a'];
const UNITS = '(units: ms, s, m, h, d, w, y)';

it.each([
  ['1M', MONTH],
  ['1 month', "for a month '30d' or the algorithm 'calendar-window' with period: 'month'"],
  ['2months', "for a month '30d' or the algorithm 'calendar-window' with period: 'month'"],
  ['60', "'60s' for seconds, or '60ms' for milliseconds"],
])('says what to write in place of %j', async (interval, hint) => {
  await expect(start({ limits: [{ ...limit, interval }] })).rejects.toThrow(
    `limits[0].interval: expected milliseconds or a duration such as '250ms', '10s', '1m' ${UNITS}, ` +
      `more than 0 and at most 1 year, received '${interval}'; write ${hint}`,
  );
  const { stderr } = await runHere(['explain', '--limit', 'gcra:1/1s', ...AT, '--timeout', interval]);
  expect(stderr).toContain(`: expected a duration such as 500ms or 2s ${UNITS}, received '${interval}'; write ${hint}`);
});
