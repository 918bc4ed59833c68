import { describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { type LimitDefinition, RateLimit, type RateLimitModuleOptions } from '../../../lib/index.js';
import { startUp } from '../../e2e/http-app.js';

const gcra: LimitDefinition = { algo: 'gcra', rate: 2, interval: '1m' };

class Audit {}
class Other {
  handle = (): undefined => undefined;
}

/** Options of the module, a limit or the defaults, as JavaScript may write them. */
const options = (given: object) => given as RateLimitModuleOptions;
const limit = (given: object) => ({ ...gcra, ...given }) as LimitDefinition;

const OBSERVER = 'a function, or an injectable class that implements DecisionObserver';
const RESOLVER = 'a function, or an injectable class that implements RefusalResolver';
const KEY = "'ip', 'user', 'global', 'header:<name>', a function or a class that implements KeyResolver";

const wrongKey = (location: string) =>
  `${location}.key: expected ${KEY}, received [class Audit], which has no method 'resolve'`;

const withMember = (member: string) =>
  class Plans {
    resolve = () => gcra;
    [key: string]: unknown;
    constructor() {
      this[member] = 5;
    }
  };

const METHODS = [
  ['onDecision', 'observe', OBSERVER],
  ['onRefused', 'observe', OBSERVER],
  ['onNear', 'observe', OBSERVER],
  ['answer', 'resolve', RESOLVER],
] as const;

describe.each(METHODS)("a class without a method, given as '%s',", (option, method, wants) => {
  const message = (location: string) =>
    `${location}.${option}: expected ${wants}, received [class Audit], which has no method '${method}'`;

  it('is refused in the module', async () => {
    await expect(startUp(options({ [option]: Audit, limits: [gcra] }))).rejects.toThrow(message('RateLimitModule'));
  });

  it('is refused on limits', async () => {
    const limits = [limit({ [option]: Other, name: 'a', skip: () => true }), limit({ [option]: Audit })];
    const first = startUp({ limits: limits.slice(1) });
    await expect(first).rejects.toThrow(message('limits[0]'));
    await expect(startUp({ limits })).rejects.toThrow(
      new RegExp(`limits\\[0\\]\\.${option}: expected .+, received \\[class Other\\]`),
    );
    await expect(startUp({ define: { api: limit({ [option]: Audit }) } })).rejects.toThrow(message('define.api'));
  });

  it('is refused on routes', async () => {
    @Controller('a')
    class A {
      @Get()
      @RateLimit(limit({ [option]: Audit }))
      get(): void {}
    }
    await expect(startUp({}, [A])).rejects.toThrow(message('@RateLimit on A.get'));
  });
});

it("is refused in 'defaults' as their answer", async () => {
  await expect(startUp(options({ defaults: { answer: Audit }, limits: [gcra] }))).rejects.toThrow(
    "defaults.answer: expected a function, or an injectable class that implements RefusalResolver, received [class Audit], which has no method 'resolve'",
  );
});

it("is refused as the 'key' of a limit, which it names", async () => {
  await expect(startUp({ limits: [gcra, limit({ key: Audit })] })).rejects.toThrow(wrongKey('limits[1]'));
  await expect(startUp({ define: { api: limit({ key: Audit }) } })).rejects.toThrow(wrongKey('define.api'));
});

it('is refused in place of a limit, which it names', async () => {
  const message =
    'limits[1]: Audit.resolve: expected a class that implements LimitResolver: it has a method resolve, received undefined';
  await expect(startUp(options({ limits: [gcra, Audit] }))).rejects.toThrow(message);
});

describe('a class where only a function can stand', () => {
  it.each(['cost', 'skip', 'count', 'priority', 'body', 'onStoreError', 'rate'])('is refused as %s', async (option) => {
    const message = new RegExp(`limits\\[0\\]\\.${option}: expected .+, received \\[class Audit\\]`);
    await expect(startUp({ limits: [limit({ [option]: Audit })] })).rejects.toThrow(message);
  });

  it.each(['body', 'onStoreError'])('is refused as %s of the module', async (option) => {
    const message = new RegExp(`RateLimitModule\\.${option}: expected .+, received \\[class Audit\\]`);
    await expect(startUp(options({ [option]: Audit }))).rejects.toThrow(message);
  });

  it('is refused as a message', async () => {
    const message = 'limits[0].message: expected a string or a function that returns one, received [class Audit]';
    await expect(startUp({ limits: [limit({ message: Audit })] })).rejects.toThrow(message);
  });
});

describe('a member of a LimitResolver', () => {
  it.each([
    ['tttl', 'ttl'],
    ['tlt', 'ttl'],
    ['TTL', 'ttl'],
    ['maxKey', 'maxKeys'],
    ['maxkeys', 'maxKeys'],
    ['keyof', 'keyOf'],
    ['fallBack', 'fallback'],
    ['fallbakc', 'fallback'],
  ])('is refused as %s, which is almost %s', async (member, meant) => {
    const message = `limits[0]: Plans: unknown member '${member}'. Did you mean '${meant}'? If not, choose a name that differs more`;
    await expect(startUp(options({ limits: [withMember(member)] }))).rejects.toThrow(message);
  });

  it('is refused if it is a method of the class, too', async () => {
    class Plans {
      keyof(): string {
        return 'a';
      }
      resolve = () => gcra;
    }
    await expect(startUp(options({ limits: [Plans] }))).rejects.toThrow(
      "limits[0]: Plans: unknown member 'keyof'. Did you mean 'keyOf'? If not, choose a name that differs more",
    );
  });

  it.each(['tls', 'plans', 'keys', 'calls', 'cache', 'maxRetries', 'toString', 'fallbackRates'])(
    'may be called %s',
    async (member) => {
      await expect(startUp(options({ limits: [withMember(member)] }))).resolves.toBeUndefined();
    },
  );
});
