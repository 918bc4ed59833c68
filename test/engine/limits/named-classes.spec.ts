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
  `${location}: option 'key' is [class Audit], which has no method 'resolve', wants ${KEY}`;

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
    `${location}: option '${option}' is [class Audit], which has no method '${method}', wants ${wants}`;

  it('is refused in the module', async () => {
    await expect(startUp(options({ [option]: Audit, limits: [gcra] }))).rejects.toThrow(message('RateLimitModule'));
  });

  it('is refused on limits', async () => {
    const limits = [limit({ [option]: Other, name: 'a', skip: () => true }), limit({ [option]: Audit })];
    const first = startUp({ limits: limits.slice(1) });
    await expect(first).rejects.toThrow(message('limits[0]'));
    await expect(startUp({ limits })).rejects.toThrow("limits[0]: option '" + option + "' is [class Other]");
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
    "defaults: option 'answer' is [class Audit], which has no method 'resolve'",
  );
});

it("is refused as the 'key' of a limit, which it names", async () => {
  await expect(startUp({ limits: [gcra, limit({ key: Audit })] })).rejects.toThrow(wrongKey('limits[1]'));
  await expect(startUp({ define: { api: limit({ key: Audit }) } })).rejects.toThrow(wrongKey('define.api'));
});

it('is refused in place of a limit, which it names', async () => {
  const message = "limits[1]: Audit: option 'resolve' is undefined, wants a class that implements LimitResolver";
  await expect(startUp(options({ limits: [gcra, Audit] }))).rejects.toThrow(message);
});

describe('a class where only a function can stand', () => {
  it.each(['cost', 'skip', 'count', 'priority', 'body', 'onStoreError', 'rate'])('is refused as %s', async (option) => {
    const message = `limits[0]: option '${option}' is [class Audit], wants `;
    await expect(startUp({ limits: [limit({ [option]: Audit })] })).rejects.toThrow(message);
  });

  it.each(['body', 'onStoreError'])('is refused as %s of the module', async (option) => {
    const message = `RateLimitModule: option '${option}' is [class Audit], wants `;
    await expect(startUp(options({ [option]: Audit }))).rejects.toThrow(message);
  });

  it('is refused as a message', async () => {
    const message = "limits[0]: option 'message' is [class Audit], wants a string or a function that makes one";
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
    const message = `limits[0]: Plans: member '${member}' is almost '${meant}', wants '${meant}', or a name that differs more`;
    await expect(startUp(options({ limits: [withMember(member)] }))).rejects.toThrow(message);
  });

  it('is refused if it is a method of the class, too', async () => {
    class Plans {
      keyof(): string {
        return 'a';
      }
      resolve = () => gcra;
    }
    await expect(startUp(options({ limits: [Plans] }))).rejects.toThrow("member 'keyof' is almost 'keyOf'");
  });

  it.each(['tls', 'plans', 'keys', 'calls', 'cache', 'maxRetries', 'toString', 'fallbackRates'])(
    'may be called %s',
    async (member) => {
      await expect(startUp(options({ limits: [withMember(member)] }))).resolves.toBeUndefined();
    },
  );
});
