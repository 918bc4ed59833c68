import { describe, expect, it } from '@jest/globals';
import {
  amount,
  bytes,
  duration,
  legible,
  milliseconds,
  percent,
  perSecond,
  plural,
  relative,
  signedMilliseconds,
  units,
} from '../../../lib/engine/util/figures.js';

/** What is written, with ordinary spaces. */
const plain = (text: string): string => text.replaceAll(/[\u00a0\u202f]/g, ' ');

describe('the page writes', () => {
  it.each([
    [0, '0'],
    [0.04, '< 0.1'],
    [0.5, '0.5'],
    [12, '12'],
    [12.34, '12.3'],
    [1_234.5, '1,235'],
    [123_456, '123.5K'],
  ])('%d a second as %s', (value, text) => expect(plain(perSecond(value))).toBe(text));

  it.each([
    [0, 0, '0%'],
    [0, 10, '0%'],
    [1, 100_000, '< 0.1%'],
    [1, 3, '33%'],
    [1, 40, '2.5%'],
    [99_999, 100_000, '99.9%'],
    [9_995, 10_000, '99.9%'],
    [5, 5, '100%'],
  ])('%d of %d as %s', (part, all, text) => expect(plain(percent(part, all))).toBe(text));

  it.each([
    [0.2, '1 ms'],
    [999, '999 ms'],
    [1_000, '1 s'],
    [1_840, '1.8 s'],
    [59_999, '1 min'],
    [61_000, '1 min 1 s'],
    [3_600_000, '1 h'],
    [3_605_000, '1 h'],
    [90_000_000, '1 d 1 h'],
  ])('a duration of %d ms as %s', (ms, text) => expect(plain(duration(ms))).toBe(text));

  it.each([
    [null, '–'],
    [0.412, '0.41 ms'],
    [41.26, '41.3 ms'],
    [412.6, '413 ms'],
    [1_500, '1.5 s'],
  ])('the time %s as %s', (ms, text) => expect(plain(milliseconds(ms))).toBe(text));

  it.each([
    [0.3, '0 ms'],
    [12.4, '+12 ms'],
    [-12.4, '−12 ms'],
    [-1_840, '−1.8 s'],
  ])('an offset of %d ms as %s', (ms, text) => expect(plain(signedMilliseconds(ms))).toBe(text));

  it.each([
    [null, 'unknown'],
    [0, '0 B'],
    [999, '999 B'],
    [3_200_000, '3.2 MB'],
    [256_000_000, '256 MB'],
    [5e15, '5000 TB'],
  ])('%s bytes as %s', (value, text) => expect(plain(bytes(value))).toBe(text));

  it('times as distances from now', () => {
    expect(plain(relative(61_000, 0))).toBe('in 1 min 1 s');
    expect(plain(relative(0, 61_000))).toBe('1 min 1 s ago');
    expect(relative(500, 0)).toBe('now');
  });

  it('counts with what is counted', () => {
    expect([plural(1, 'entry', 'entries'), plural(1_000, 'limit')]).toEqual(['1 entry', '1,000 limits']);
  });

  it.each([
    [0, 'tokens', '0 tokens'],
    [1, 'tokens', '1 token'],
    [2, 'tokens', '2 tokens'],
    [1_000, 'API calls', '1,000 API calls'],
    [1, 'API calls', '1 API call'],
    [1, 'Tokens', '1 Token'],
    [1, 'images', '1 image'],
    [1, 'bytes', '1 byte'],
    [1, 'messages', '1 message'],
    [1, 'queues', '1 queue'],
    [1, 'keys', '1 key'],
    [1, 'GPU-days', '1 GPU-day'],
    [1, 'GPU seconds', '1 GPU second'],
    [1, 'months', '1 month'],
    [1, 'GPUs', '1 GPU'],
    [1, undefined, '1'],
    [1_000_000, 'USD', '$1.00'],
    [1, 'JPY', '¥0.000001'],
  ])('%d of %s as %s', (count, unit, text) => expect(plain(amount(count, unit))).toBe(text));

  // Some of them are wrong of one, but none is a word that nobody wrote.
  const AS_GIVEN =
    'ms ops kbps GB HTTP gas class status bonus series data news lens kWh queries searches boxes processes analyses ' +
    'indices leaves heroes statistics Aufrufe fois virus request S s es';
  it.each([...AS_GIVEN.split(' '), 'parts of it', 'tokens '])('the name %s of one as it is given', (unit) =>
    expect(plain(amount(1, unit))).toBe(`1 ${unit}`),
  );

  it('units that have no name as units', () => {
    expect([units(1), units(2), units(1, 'tokens'), units(500_000, 'USD')].map(plain)).toEqual([
      '1 unit',
      '2 units',
      '1 token',
      '$0.50',
    ]);
  });
});

it.each([
  ['user:42', 'user:42'],
  ['<b>Zoë</b> 👩‍💻 مرحبا', '<b>Zoë</b> 👩‍💻 مرحبا'],
  ['eve\u202Eh1 rof', 'eve\\u{202e}h1 rof'],
  ['a\0b\n', 'a\\u{0}b\\u{a}'],
  ['pay\u200Bpal\uFEFF', 'pay\\u{200b}pal\\u{feff}'],
])('the page shows the identity %j as %j', (identity, text) => expect(legible(identity)).toBe(text));
