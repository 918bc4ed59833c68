import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { type LimitInfo, RateLimitGuard, RateLimitModule, type RateLimitModuleOptions } from '../../lib/index.js';
import { NotingResponse } from '../support/http/responses.js';

@Controller()
class Routes {
  get() {}
}

const two = { algo: 'fixed-window', rate: 2, interval: '1h' } as const;
const three = [
  { ...two, name: 'first' },
  { ...two, name: 'second' },
  { ...two, name: 'third' },
];

/** A request of HTTP, which counts how often its address is read. */
class Request {
  reads = 0;
  readonly headers = {};

  constructor(private readonly address: string) {}

  get ip(): string {
    this.reads++;
    return this.address;
  }
}

function contextOf(request: object, response: object = {}): ExecutionContext {
  const args = [request, response];
  const context = {
    getType: () => 'http',
    getArgs: () => args,
    getClass: () => Routes,
    getHandler: () => Reflect.get(Routes.prototype, 'get') as object,
  };
  return context as unknown as ExecutionContext;
}

describe('the guard, in process', () => {
  let app: TestingModule | undefined;
  afterEach(() => app?.close());

  async function start(options: RateLimitModuleOptions): Promise<RateLimitGuard> {
    app = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot(options)],
      controllers: [Routes],
    }).compile();
    await app.createNestApplication().init();
    return app.get(RateLimitGuard);
  }

  it('gives no promise for what is allowed, and charges a call that it sees twice once', async () => {
    const guard = await start({ limits: [two] });
    const context = contextOf(new Request('203.0.113.1'));
    expect([guard.canActivate(context), guard.canActivate(context)]).toEqual([true, true]);
    expect(guard.canActivate(contextOf(new Request('203.0.113.1')))).toBe(true);
    const refused = contextOf(new Request('203.0.113.1'));
    for (const again of [guard.canActivate(refused), guard.canActivate(refused)]) {
      await expect(again).rejects.toMatchObject({ status: 429 });
    }
  });

  it('looks once for a key that several limits have', async () => {
    const guard = await start({ limits: three });
    const request = new Request('203.0.113.1');
    expect(guard.canActivate(contextOf(request))).toBe(true);
    expect(request.reads).toBe(1);
  });

  it('tells clients apart, however many come between two requests of one', async () => {
    const guard = await start({ limits: [two] });
    const ask = (address: string) => guard.canActivate(contextOf(new Request(address)));
    const first = ['203.0.113.1', '2001:db8::1', '::ffff:203.0.113.2'];
    for (const address of [...first, ...first]) expect(ask(address)).toBe(true);
    for (let i = 0; i < 2500; i++) expect(ask(`10.0.${i >> 8}.${i & 255}`)).toBe(true);
    for (const address of [...first, '2001:db8::2', '203.0.113.2']) {
      await expect(ask(address)).rejects.toMatchObject({ status: 429 });
    }
  });

  it('gives each call of a formatter a list of its own', async () => {
    const lists: string[][] = [];
    const format = (_: unknown, limits: readonly LimitInfo[]) => {
      lists.push((limits as LimitInfo[]).splice(0).map(({ name }) => name));
      return {};
    };
    const guard = await start({ limits: three, headers: format });
    for (let i = 0; i < 2; i++) {
      expect(guard.canActivate(contextOf(new Request('203.0.113.1'), new NotingResponse()))).toBe(true);
    }
    expect(lists).toEqual([
      ['first', 'second', 'third'],
      ['first', 'second', 'third'],
    ]);
  });
});
