import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { nearest } from '../../lib/engine/errors/wording.js';
import { ProcessMeter } from '../../lib/engine/util/process-meter.js';
import { flatCopy, ValueCache } from '../../lib/engine/util/bounded-maps.js';
import { withoutSecrets, withoutSecretsIn } from '../../lib/engine/errors/reasons.js';

describe('the name that was meant', () => {
  it.each([
    ['raet', 'rate'],
    ['Rate', 'rate'],
    ['reat', 'rate'],
    ['intervall', 'interval'],
    ['blockfor', 'blockFor'],
    ['gate', 'rate'],
    ['name', undefined],
    ['near', undefined],
    ['x', undefined],
    ['', undefined],
    ['__proto__', undefined],
  ])('by %p is %p', (word, meant) => {
    expect(nearest(word, ['rate', 'interval', 'burst', 'blockFor', 'nearLimit'])).toBe(meant);
  });

  it('is the nearest of several', () => {
    expect(nearest('limits', ['limit', 'list', 'lists'])).toBe('limit');
    expect(nearest('rates', [])).toBeUndefined();
  });
});

function fail(): never {
  throw new Error('wrong');
}

/** Numbers what is made anew. */
function made(): (value: unknown) => number {
  let count = 0;
  const cache = new ValueCache<number>();
  return (value) => cache.of(value, () => ++count);
}

const same = () => 1;

describe('a ValueCache', () => {
  it('knows equal objects, in whatever order they were written', () => {
    const of = made();
    expect(of({ a: 1, b: { c: 'x' } })).toBe(of({ b: { c: 'x' }, a: 1 }));
    const list = [
      { a: 1 },
      { a: '1' },
      { a: 2 },
      { a: null },
      { a: undefined },
      { b: 1 },
      { a: [1] },
      { a: { 0: 1 } },
      {},
    ];
    const all = [...list, { a: '#1' }, { a: 'number 1' }, { a: 1n }];
    expect(new Set(all.map(of)).size).toBe(all.length);
  });

  it('tells functions and instances of classes apart', () => {
    const of = made();
    expect(of({ cost: same })).toBe(of({ cost: same }));
    expect(of({ cost: same })).not.toBe(of({ cost: () => 1 }));
    class Options {
      readonly rate = 1;
    }
    expect(of(new Options())).not.toBe(of(new Options()));
    expect(of(Object.defineProperty({}, 'rate', { value: 1 }))).not.toBe(of({}));
  });

  it('comes to an end with what holds itself', () => {
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    expect(made()(circle)).toBe(1);
  });

  it('forgets what failed, and the least recently used', () => {
    const cache = new ValueCache<number>();
    expect(() => cache.of({ a: 0 }, fail)).toThrow('wrong');
    expect(cache.of({ a: 0 }, () => 1)).toBe(1);
    for (let i = 1; i <= 1000; i++) cache.of({ a: i }, () => i);
    expect(cache.of({ a: 1 }, () => -1)).toBe(1);
    expect(cache.of({ a: 0 }, () => -1)).toBe(-1);
  });
});

describe('how busy the process is', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('is told in the middle of a turn, and over a quarter of a second', () => {
    jest.useFakeTimers();
    let now = 1000;
    let used = 0;
    const meter = new ProcessMeter(
      () => now,
      () => used,
      4,
    );
    const pass = (ms: number) => {
      now += ms;
      jest.advanceTimersByTime(ms);
    };
    expect([meter.eventLoopDelay, meter.cpu, jest.getTimerCount()]).toEqual([0, 0, 1]);
    // A turn that takes 70 ms: the timer was due after 20.
    now += 70;
    expect(meter.eventLoopDelay).toBe(50_000);
    jest.advanceTimersByTime(20);
    expect(meter.eventLoopDelay).toBe(0);
    // Two of four processors, for 300 ms.
    for (let tick = 0; tick < 15; tick++) {
      used += 40_000;
      pass(20);
    }
    expect(meter.cpu).toBeGreaterThan(0.3);
    expect(meter.cpu).toBeLessThanOrEqual(0.5);
    for (let tick = 0; tick < 260; tick++) pass(20);
    expect(jest.getTimerCount()).toBe(0);
    expect(meter.eventLoopDelay).toBe(0);
    meter.close();
    expect(jest.getTimerCount()).toBe(0);
  });
});

describe('a text that holds on to nothing else', () => {
  it.each([
    ['', 'ascii', '\xff\x00', '\u0100', '\ud83d\ude00', '\ud800', 'a\udc00b', '\u00e9'.repeat(64), '\u4e2d'.repeat(64)],
    ['x'.repeat(128), 'x'.repeat(129), '\ud800'.repeat(1000)],
  ])('is copied as it is', (...texts) => {
    expect(texts.map(flatCopy)).toEqual(texts);
  });
});

describe('texts without secrets', () => {
  const SECRET = 'kJ8+/x3Y1mQ=';

  it.each([
    `cache.redis.example.net:6380,password=${SECRET},ssl=True,abortConnect=False`,
    `cache.redis.example.net:6380,password=a,b@c;d&e ${SECRET},ssl=True`,
    `cache.redis.example.net:6380,user=app,PWD=${SECRET}`,
    `cache:6380;Password = ${SECRET}`,
    `cache:6380,accessKey=${SECRET}`,
    `Endpoint=cache;SharedAccessKey=${SECRET}`,
    `redi://user:${SECRET}@host:6379`,
    `redis://user:my@token=${SECRET}@host:6379`,
    `redis://:${SECRET}/@host:6379/0`,
    `user:${SECRET}@host:6379`,
    `redis://host:6379?password=a@${SECRET}`,
    `redis://host:6379/0?db=1&auth_token=${SECRET}`,
    `redis://host:6379,password=${SECRET}`,
    `host:6379:${SECRET}`,
    `redis-cli -h host -a ${SECRET}`,
    `redis-cli --pass ${SECRET} -h host`,
    `redis-cli -u redis://default:${SECRET}@host:6379`,
    `REDIS_PASSWORD=${SECRET}`,
    `{ host: 'x', "password": "${SECRET}" }`,
    `{ host: 'x', password: '${SECRET}' }`,
    'AbCdEfGhIj0123456789KlMnOp=',
  ])('hides the secret of %j', (text) => {
    expect(String(withoutSecrets(text))).toContain('***');
    expect(withoutSecrets(text)).not.toContain('J8');
    expect(withoutSecrets(text)).not.toContain('KlMn');
    expect(withoutSecrets([text])).toEqual([withoutSecrets(text)]);
  });

  it.each([
    '',
    'localhost:6379',
    'redis://localhost:6379/0',
    'http://x',
    'not a url',
    'redis-auth.internal:6379',
    'rediss://[::1]:6380',
  ])('leaves %j as it is', (text) => {
    expect(withoutSecrets(text)).toBe(text);
    expect(withoutSecretsIn(text)).toBe(text);
  });

  it('keeps what helps to find the mistake', () => {
    expect(withoutSecrets(`cache:6380,password=${SECRET},ssl=True`)).toBe('cache:6380,password=***');
    expect(withoutSecrets(`redi://user:${SECRET}@host:6379`)).toBe('redi://***@host:6379');
    expect(withoutSecrets({ host: 'x', password: SECRET })).toEqual({ host: '***', password: '***' });
  });

  it('hides secrets within a message', () => {
    const message = `getaddrinfo ENOTFOUND cache,password=${SECRET} of '--redis redis://a:${SECRET}@h' in 'x'`;
    expect(withoutSecretsIn(message)).toBe(
      "getaddrinfo ENOTFOUND cache,password=*** of '--redis redis://***@h' in 'x'",
    );
    const example = "expected the URL 'rediss://app:<password>@h:6380', or redis://user:password@host:port";
    expect(withoutSecretsIn(example)).toBe(example);
    const refused = 'WRONGPASS invalid username-password pair or user is disabled.';
    expect(withoutSecretsIn(refused)).toBe(refused);
  });
});
