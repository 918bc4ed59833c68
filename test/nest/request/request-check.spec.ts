import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller } from '@nestjs/common';
import { type LimitDefinition, RateLimit } from '../../../lib/index.js';
import { Gate } from '../../support/time/gate.js';
import { AppCalls, type AppLimits, type Asking, callOf } from './app-calls.js';
import { Connection } from './connections.js';
import { SharedStore } from '../../support/redis/shared-store.js';

const ten = { algo: 'fixed-window', rate: 10, interval: '1m' } as const;

/** What the key of a limit waits for. */
let known = Promise.resolve();

const define = {
  plain: { ...ten, key: 'global' },
  costly: { ...ten, key: 'global', cost: 2 },
  watched: { ...ten, key: 'global', mode: 'shadow' },
  slow: { ...ten, key: () => known.then(() => 'slow') },
  keyed: { ...ten, key: 'header:x-key', onMissingKey: 'skip' },
} satisfies Record<string, LimitDefinition>;

@Controller()
class Routes {
  @RateLimit('plain')
  plain() {}

  @RateLimit('plain', 'costly')
  costly() {}

  @RateLimit('watched')
  watched() {}

  @RateLimit('watched', 'plain')
  both() {}

  @RateLimit('slow')
  slow() {}

  @RateLimit('keyed')
  keyed() {}

  @RateLimit('plain', () => null)
  chosen() {}
}

const client = '203.0.113.1';

const gone = () => Object.assign(new Connection(), { destroyed: true });

describe('the check of a request', () => {
  let app: AppCalls | undefined;
  let store: SharedStore;
  beforeEach(() => {
    store = new SharedStore();
  });
  afterEach(async () => {
    known = Promise.resolve();
    await app?.close();
  });

  const start = async (limits: AppLimits = {}) => {
    const started = (app = await AppCalls.start([Routes], { define, store, ...limits }));
    return (handler: keyof Routes, { reply = new Connection(), ...asking }: Asking & { reply?: Connection } = {}) => {
      const context = callOf(Routes, handler, [{ ip: client, headers: {}, ...asking }, reply]);
      return { context, checked: started.limiter.beforeGuards(context) };
    };
  };
  const names = () => store.checks.map(({ entries }) => entries.map(({ limit }) => limit.name));

  it('refuses a request whose client has left, and charges nobody for it', async () => {
    const ask = await start();
    for (const handler of ['plain', 'both', 'slow'] as const) {
      await expect(ask(handler, { reply: gone() }).checked).rejects.toMatchObject({ status: 499 });
    }
    expect(names()).toEqual([]);
  });

  it('refuses a request whose client leaves while functions are asked', async () => {
    const ask = await start();
    const gate = new Gate();
    known = gate.passed;
    const reply = new Connection();
    const { checked } = ask('slow', { reply });
    reply.destroyed = true;
    gate.open();
    await expect(checked).rejects.toMatchObject({ status: 499 });
    expect(names()).toEqual([]);
  });

  it('refuses nothing where all limits only watch', async () => {
    const ask = await start();
    expect(await ask('watched', { reply: gone() }).checked).toBe(true);
    expect(names()).toEqual([['watched']]);
  });

  it('says that units may be given back where a limit may, or functions may replace limits', async () => {
    const ask = await start();
    const seen: [keyof Routes, boolean][] = [];
    for (const handler of ['plain', 'costly', 'slow', 'chosen'] as const) {
      await ask(handler).checked;
      seen.push([handler, store.checks.at(-1)?.refundable as boolean]);
    }
    expect(seen).toEqual([
      ['plain', false],
      ['costly', true],
      ['slow', false],
      ['chosen', true],
    ]);
    await ask('chosen', { user: { id: 'known' } }).checked;
    expect(store.checks.at(-1)?.refundable).toBe(false);
  });

  it('asks no store where no limit applies', async () => {
    const ask = await start();
    const { checked, context } = ask('keyed');
    expect(checked).toBe(true);
    expect([names(), app?.limitedBy(context)?.applicable.map(({ name }) => name)]).toEqual([[], ['keyed']]);
  });

  it('tells the store an address where lists may want it, and only there', async () => {
    const ask = await start();
    await ask('plain').checked;
    await ask('slow').checked;
    await app?.service.deny({ ip: '198.51.100.0/24' }, { limit: 'plain' });
    await ask('plain').checked;
    await ask('slow').checked;
    expect(store.checks.map(({ address }) => address)).toEqual([undefined, undefined, client, client]);
    await expect(ask('plain', { ip: '198.51.100.7' }).checked).rejects.toMatchObject({ status: 403 });
  });
});
