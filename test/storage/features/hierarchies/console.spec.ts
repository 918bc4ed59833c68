import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ConsoleApp, type KeyChanged, type Lookup, type Problem, THINGS } from '../../../console/console-app.js';

const REASON = { reason: 'a test' };

describe('limits within others in the console', () => {
  let app: ConsoleApp;
  beforeAll(async () => {
    app = await ConsoleApp.start({
      console: { actor: () => 'ops@example.com' },
      limits: {
        define: {
          things: THINGS,
          user: { algo: 'sliding-window', rate: 5, interval: '1h', within: 'team' },
          team: { algo: 'sliding-window', rate: 10, interval: '1h' },
        },
      },
    });
  });
  afterAll(() => app?.close());

  const limiter = () => app.service.for('user');
  const within = { team: 't1' };
  const stateOf = async (name: string, identity: string) => {
    const answer = await app.post('lookup', { identity });
    const { limits } = (await answer.json()) as Lookup;
    return limits.find(({ limit }) => limit === name)!;
  };

  it('are looked up by the path of a key', async () => {
    await limiter().consume('u1', { within, cost: 3 });
    expect(await stateOf('user', 't1/u1')).toMatchObject({ used: 3, remaining: 2 });
    const { history } = await stateOf('user', 't1/u1');
    expect(history!.reduce((sum, { used }) => sum + used, 0)).toBe(3);
    expect(await stateOf('team', 't1')).toMatchObject({ used: 3 });
    const unknown = await stateOf('user', 'u1');
    expect(unknown).toMatchObject({ used: null });
    expect(unknown.explanation).toContain("no key is given for 'team', which it is within");
  });

  it('are changed by the path of a key', async () => {
    const change = (path: string, body: object = {}) =>
      app.change<KeyChanged>(`keys/${path}`, { limit: 'user', identity: 't1/u2', ...REASON, ...body });
    await limiter().consume('u2', { within, cost: 2 });
    await change('penalize', { units: 1 });
    expect(await limiter().peek('u2', { within })).toMatchObject({ levels: [{ remaining: 2 }, { remaining: 4 }] });
    await change('reset');
    expect(await limiter().peek('u2', { within })).toMatchObject({ levels: [{ remaining: 5 }, { remaining: 4 }] });
    await change('block', { duration: '1h' });
    expect(await limiter().peek('u2', { within })).toMatchObject({ allowed: false, limit: 'user' });
    const { state } = await change('unblock');
    expect(state.blockedUntil).toBeNull();
    const answer = await app.post('keys/reset', { limit: 'user', identity: 'u2', ...REASON });
    const problem = (await answer.json()) as Problem;
    expect(problem.errors).toMatchObject([{ field: 'identity', message: expect.stringContaining("'team', 'user'") }]);
  });
});
