import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { RateLimitModule, type RateLimitModuleOptions, RateLimitArgumentError } from '../../lib/index.js';
import { readLimit } from '../../lib/cli/limit-spec.js';
import { asRecord } from '../../lib/overrides/override-record.js';
import { TestClock } from '../../lib/testing/index.js';
import { Test } from '@nestjs/testing';

const UNITLESS = ['60', '1000', ' 60 ', '0.5', '1e3', '60 ', '.5'];

const start = (options: RateLimitModuleOptions) =>
  Test.createTestingModule({ imports: [RateLimitModule.forRoot(options)] })
    .compile()
    .then((app) => app.init());

const limit = { algo: 'gcra', rate: 1, interval: '1s' } as const;

describe.each(UNITLESS)('the duration %j, which has no unit', (text) => {
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
  ])('is refused as %s', async (option, options) => {
    const refused = expect(start(options)).rejects;
    await refused.toThrow(new RegExp(`option '${option}(\\[1\\])?' is .*${text.replace('.', '\\.')}.*, wants .*`));
  });

  it('is refused in calls', () => {
    const advance = () => new TestClock().advance(text);
    expect(advance).toThrow(RateLimitArgumentError);
    expect(advance).toThrow('wants milliseconds or a duration such as');
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
    expect(() => readLimit(spec)).toThrow('wants milliseconds or a duration such as');
  },
);

it('keeps what overrides of an earlier release mean', () => {
  const others = { version: 1, generation: 0, inherit: 'keep', expiresAt: null, quota: 5, previousQuota: 5 };
  const patchOf = (patch: object) => (asRecord({ ...others, patch }) as { patch?: unknown }).patch;
  expect(patchOf({ rate: 5, interval: '1000' })).toEqual({ rate: 5, interval: 1000 });
  expect(patchOf({ rate: 5, interval: '1s' })).toEqual({ rate: 5, interval: '1s' });
});
