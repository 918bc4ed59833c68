import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext } from '@nestjs/common';
import { headerIdentity, type LimitDefinition, RateLimit } from '../../../lib/index.js';
import { Gate } from '../../support/time/gate.js';
import { AppCalls, type Asking, callOf, told } from './app-calls.js';

const ten = { algo: 'fixed-window', rate: 10, interval: '1m' } as const;

/** What the key of a limit waits for. */
let known = Promise.resolve();
let looks = 0;

const slowly = async (context: ExecutionContext) => {
  await known;
  return context.switchToHttp().getRequest<Asking>().headers?.['x-user'];
};
const define = {
  address: ten,
  header: { ...ten, key: 'header:x-user', onMissingKey: 'skip' },
  again: ten,
  ranked: { ...ten, key: 'global', reserveFor: { critical: 0.5 }, priority: 'critical' },
  slow: { ...ten, key: slowly, onMissingKey: 'skip' },
  other: { ...ten, key: 'global' },
  child: { ...ten, key: () => 'child', within: 'parent' },
  parent: { ...ten, key: slowly },
} satisfies Record<string, LimitDefinition>;

@Controller()
class Routes {
  @RateLimit('address', 'header', 'again')
  fixed() {}

  @RateLimit('ranked', 'slow', 'other')
  asked() {}

  @RateLimit({ ...ten, name: 'looked', key: () => `look ${++looks}` }, 'header')
  looked() {}

  @RateLimit('child', 'other')
  nested() {}
}

const address = '203.0.113.1';

describe('what a request asks the store', () => {
  let app: AppCalls | undefined;
  afterEach(async () => {
    known = Promise.resolve();
    looks = 0;
    await app?.close();
  });

  const start = async () => {
    const started = (app = await AppCalls.start([Routes], { define }));
    const ask = (handler: keyof Routes, headers: Record<string, string> = {}) => {
      const context = callOf(Routes, handler, [{ ip: address, headers }, {}]);
      return { context, checked: started.limiter.beforeGuards(context) };
    };
    return { ask, app: started };
  };

  it('counts by the key of each limit, where limits with equal keys come between', async () => {
    const { ask, app } = await start();
    expect(ask('fixed', { 'x-user': 'u' }).checked).toBe(true);
    expect(await app.left('address', `ip:${address}`)).toBe(9);
    expect(await app.left('header', headerIdentity('x-user', 'u'))).toBe(9);
    expect(await app.left('again', `ip:${address}`)).toBe(9);
  });

  it('leaves out limits without a key, whether functions are asked or not', async () => {
    const { ask } = await start();
    const fixed = ask('fixed');
    await fixed.checked;
    expect(told(fixed.context)).toEqual([
      ['address', 10, 9],
      ['again', 10, 9],
    ]);
    const looked = ask('looked');
    expect(looked.checked).toBe(true);
    expect(told(looked.context)).toEqual([['looked', 10, 9]]);
    const asked = ask('asked');
    expect(await asked.checked).toBe(true);
    expect(told(asked.context)).toEqual([
      ['ranked', 10, 9],
      ['other', 10, 9],
    ]);
  });

  it('is of the rates that hold once functions have answered, for the priority of the request', async () => {
    const { ask, app } = await start();
    const gate = new Gate();
    known = gate.passed;
    const asked = ask('asked', { 'x-user': 'u' });
    await app.service.setRate('ranked', { rate: 4, interval: '1m' });
    await app.service.setRate('slow', { rate: 5, interval: '1m' });
    gate.open();
    await asked.checked;
    expect(told(asked.context)).toEqual([
      ['ranked', 4, 3],
      ['slow', 5, 4],
      ['other', 10, 9],
    ]);
  });

  it('is nothing of limits that were turned off while functions were asked', async () => {
    const { ask, app } = await start();
    const gate = new Gate();
    known = gate.passed;
    const asked = ask('asked', { 'x-user': 'u' });
    await app.service.setMode('slow', 'off');
    await app.service.setMode('ranked', 'off');
    gate.open();
    await asked.checked;
    expect(told(asked.context)).toEqual([['other', 10, 9]]);
  });

  it('is of the rates that hold once the functions of all levels have answered', async () => {
    const { ask, app } = await start();
    const gate = new Gate();
    known = gate.passed;
    const asked = ask('nested', { 'x-user': 'u' });
    await app.service.setRate('child', { rate: 3, interval: '1m' });
    await app.service.setMode('other', 'off');
    gate.open();
    await asked.checked;
    expect(told(asked.context)).toEqual([
      ['child', 3, 2],
      ['parent', 10, 9],
    ]);
  });
});
