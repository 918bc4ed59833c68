import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { AlertWatch, deliver } from '../../lib/console/alerts/alert-watch.js';
import type { ConsoleAlert, ConsoleAlerts } from '../../lib/console/index.js';
import { readAlerts } from '../../lib/console/alerts/alert-options.js';
import { ConsoleRedis } from '../../lib/console/telemetry/console-redis.js';
import { connectRedis, freshPrefix } from '../support/limits/stores.js';
import { ConsoleApp, type Incident, type Incidents } from './console-app.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;

const BASE = { severity: 'critical', since: 1_000, sinceEarlier: false } as const;
const refusing = (share: number, limit = 'login'): Incident => ({
  ...BASE,
  id: `refused ${limit}`,
  kind: 'refused',
  limit,
  allowed: 100 - 100 * share,
  refused: 100 * share,
  share,
  perSecond: 2,
  keys: [{ id: 'abc', identity: 'user:42', count: 40, error: 0 }],
  keysSince: 1_000,
});
const failing: Incident = { ...BASE, id: 'fallback', kind: 'fallback', checks: 100, failed: 50, share: 0.5 };
const near: Incident = {
  ...BASE,
  id: 'near login',
  kind: 'near',
  limit: 'login',
  allowed: 100,
  refused: 0,
  near: 20,
  keys: [],
  keysSince: null,
};

/** A watch without Redis, whose incidents and time are set. */
function watchOf(given: Partial<ConsoleAlerts> = {}) {
  const sent: ConsoleAlert[] = [];
  const now = { at: 2_000, incidents: [] as Incident[] };
  const find = () => Promise.resolve({ ...now } as unknown as Incidents);
  const options = readAlerts({ to: (alert: ConsoleAlert) => void sent.push(alert), ...given }, 'here')!;
  return { sent, now, watch: new AlertWatch(options, find, undefined, 'self', 'shop', deliver) };
}

const open = new AbortController().signal;
const to = (call: () => unknown) => readAlerts({ to: call as never }, 'here')!;

describe('a function that gets alerts', () => {
  afterEach(() => {
    jest.useRealTimers();
  });
  const alert = {} as ConsoleAlert;

  it('leaves nothing behind if it throws at once', async () => {
    jest.useFakeTimers();
    const failing = to(() => {
      throw new Error('no pager');
    });
    await expect(deliver(alert, failing, open)).rejects.toThrow('no pager');
    expect(jest.getTimerCount()).toBe(0);
  });

  it('is not waited for longer than 5 seconds', async () => {
    jest.useFakeTimers();
    const delivered = deliver(
      alert,
      to(() => new Promise(() => undefined)),
      open,
    );
    const failed = expect(delivered).rejects.toThrow('it took longer than 5 s');
    await jest.advanceTimersByTimeAsync(5000);
    await failed;
  });
});

describe('alerts', () => {
  it('report what begins and what is over, once each, and name no client', async () => {
    const { sent, now, watch } = watchOf({ link: 'https://api.example.com/ops/limits#/lists' });
    now.incidents = [refusing(0.4), failing, near];
    await watch.look();
    now.at += 5_000;
    await watch.look();
    expect(sent).toEqual([
      {
        state: 'began',
        id: 'refused login',
        kind: 'refused',
        severity: 'critical',
        limit: 'login',
        text: 'login refused 40% in the last minute: 40 of 100 decisions.',
        since: 1_000,
        at: 2_000,
        link: 'https://api.example.com/ops/limits#/limit/login',
        prefix: 'shop',
      },
      expect.objectContaining({
        kind: 'fallback',
        text: '50 of 100 checks in the last minute were decided without the store.',
        link: 'https://api.example.com/ops/limits',
      }),
    ]);
    expect(JSON.stringify(sent)).not.toContain('user:42');
    now.incidents = [failing];
    now.at += 59_000;
    await watch.look();
    expect(sent).toHaveLength(2);
    now.at += 1_000;
    await watch.look();
    expect(sent.slice(2)).toEqual([
      expect.objectContaining({ state: 'ended', id: 'refused login', at: 67_000, limit: 'login' }),
    ]);
    expect(sent[2]!.text.replaceAll('\u00a0', ' ')).toBe('Over after 1 min 6 s: login.');
  });

  it('report refusals from the share on, until they end', async () => {
    const { sent, now, watch } = watchOf({ refusedShare: 0.5 });
    now.incidents = [refusing(0.4)];
    await watch.look();
    expect(sent).toEqual([]);
    now.incidents = [refusing(0.5)];
    await watch.look();
    now.incidents = [refusing(0.3)];
    now.at += 100_000;
    await watch.look();
    expect(sent.map(({ state }) => state)).toEqual(['began']);
  });

  it('report the kinds that are asked for', async () => {
    const { sent, now, watch } = watchOf({ kinds: ['near'] });
    now.incidents = [refusing(0.9), near];
    await watch.look();
    expect(sent.map(({ id }) => id)).toEqual(['near login']);
  });

  it('that are not taken are reported again, and a warning says so once', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    let isUp = false;
    const sent: string[] = [];
    const { now, watch } = watchOf({
      to({ id }) {
        if (!isUp) throw new Error('no route');
        sent.push(id);
      },
    });
    now.incidents = [failing];
    await watch.look();
    await watch.look();
    isUp = true;
    await watch.look();
    await watch.look();
    expect(sent).toEqual(['fallback']);
    expect(warn.mock.calls.map(([text]) => text)).toEqual([
      'an alert could not be reported, and will be retried while it is active: no route',
    ]);
    warn.mockRestore();
  });
});

describe('alerts that take long', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });
  const MANY = Array.from({ length: 30 }, (_, index) => refusing(0.9, `limit${index}`));

  it('are sent side by side, so that they share one deadline', async () => {
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    let tries = 0;
    const warnings = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const { now, watch } = watchOf({ to: () => new Promise(() => void tries++) });
    now.incidents = MANY;
    const look = watch.look();
    await jest.advanceTimersByTimeAsync(0);
    expect(tries).toBe(30);
    // Node would warn of more than ten listeners.
    expect(warnings).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(5000);
    await look;
    expect(jest.getTimerCount()).toBe(0);
  });

  it('that are over are sent next to those that begin', async () => {
    let isSlow = false;
    const sent: string[] = [];
    const { now, watch } = watchOf({
      to: ({ id, state }: ConsoleAlert) => {
        sent.push(`${state} ${id}`);
        return isSlow ? new Promise(() => undefined) : undefined;
      },
    });
    now.incidents = [failing];
    await watch.look();
    isSlow = true;
    now.incidents = [near, refusing(0.9)];
    now.at += 60_000;
    void watch.look();
    await jest.advanceTimersByTimeAsync(0);
    expect(sent).toEqual(['began fallback', 'began refused login', 'ended fallback']);
    await watch.close();
  });

  it.each<[string, number, () => Promise<void>]>([
    ['that never answers', 1000, () => new Promise(() => undefined)],
    ['that answers', 300, () => new Promise((resolve) => setTimeout(resolve, 300))],
  ])('keep nothing open for longer than a second, with a function %s', async (_, withinMs, to) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const { now, watch } = watchOf({ to });
    now.incidents = MANY;
    watch.start();
    await jest.advanceTimersByTimeAsync(5000);
    const closed = jest.fn();
    void watch.close().then(closed);
    await jest.advanceTimersByTimeAsync(withinMs);
    expect(closed).toHaveBeenCalled();
    expect(jest.getTimerCount()).toBe(0);
    expect(warn).not.toHaveBeenCalled();
  });
});

describe('a webhook', () => {
  let server: Server;
  let url: string;
  const bodies: unknown[] = [];
  let status = 200;

  beforeEach(async () => {
    bodies.length = 0;
    status = 200;
    server = createServer((request, response) => {
      let text = '';
      request.on('data', (chunk) => (text += String(chunk)));
      request.on('end', () => {
        bodies.push(JSON.parse(text));
        response.writeHead(status).end('ok');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  const alert: ConsoleAlert = {
    state: 'began',
    id: 'refused <a>',
    kind: 'refused',
    severity: 'warning',
    limit: '<a>',
    text: '<a> refused 40%.',
    since: 0,
    at: 5_000,
    link: 'https://api.example.com/ops',
    prefix: 'shop',
  };

  it.each([
    ['json', {}, [alert]],
    ['slack', {}, [{ text: ':warning: &lt;a&gt; refused 40%. <https://api.example.com/ops|Open the console>' }]],
    [
      'pagerduty',
      { routingKey: 'key' },
      [
        {
          routing_key: 'key',
          dedup_key: 'nestjs-sluice shop refused <a>',
          event_action: 'trigger',
          payload: {
            summary: '<a> refused 40%.',
            source: 'nestjs-sluice, prefix shop',
            severity: 'warning',
            timestamp: '1970-01-01T00:00:00.000Z',
            class: 'refused',
            component: '<a>',
          },
          links: [{ href: 'https://api.example.com/ops', text: 'The console' }],
        },
      ],
    ],
  ] as const)('gets %s', async (format, more, wanted) => {
    await deliver(alert, readAlerts({ to: url, format, ...more }, 'here')!, open);
    expect(bodies).toEqual(wanted);
  });

  it('of PagerDuty ends what is over, and is known by its host', async () => {
    const to = 'https://events.pagerduty.com/v2/enqueue';
    expect(readAlerts({ to, routingKey: 'key' }, 'here')!.format).toBe('pagerduty');
    expect(readAlerts({ to: 'https://hooks.slack.com/services/T/B/x' }, 'here')!.format).toBe('slack');
    await deliver(
      { ...alert, state: 'ended' },
      readAlerts({ to: url, format: 'pagerduty', routingKey: 'key' }, 'here')!,
      open,
    );
    expect(bodies).toEqual([
      { routing_key: 'key', dedup_key: 'nestjs-sluice shop refused <a>', event_action: 'resolve' },
    ]);
  });

  it('is not waited for once the console closes', async () => {
    const silent = createServer();
    const cut = new Promise<void>((resolve) => {
      silent.on('request', (request) => request.socket.on('close', () => resolve()));
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const closing = new AbortController();
    const to = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/hook`;
    const delivered = deliver(alert, readAlerts({ to }, 'here')!, closing.signal);
    silent.once('request', () => closing.abort(new Error('closing')));
    await expect(delivered).rejects.toThrow('closing');
    await cut;
    silent.closeAllConnections();
    await new Promise((resolve) => silent.close(resolve));
  });

  it('that answers with an error has not taken it', async () => {
    status = 500;
    await expect(deliver(alert, readAlerts({ to: url }, 'here')!, open)).rejects.toThrow('the webhook answered 500');
  });
});

describe('alerts of several instances', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(async () => {
    await redis.quit();
  });

  /** Two instances with the same incidents, of which each does something while it looks for them. */
  function two() {
    const prefix = freshPrefix();
    const store = new ConsoleRedis(redis, prefix, 5000);
    const now = { at: 2_000, incidents: [] as Incident[] };
    const sent: string[] = [];
    const meanwhile: (() => Promise<unknown>)[] = [];
    const watches = ['a', 'b'].map((self) => {
      const options = readAlerts(
        { to: ({ id, state }: ConsoleAlert) => void sent.push(`${self}: ${state} ${id}`) },
        'here',
      )!;
      const find = async () => {
        const found = { ...now } as unknown as Incidents;
        if (self === 'a') await meanwhile.shift()?.();
        return found;
      };
      return new AlertWatch(options, find, store, self, prefix, deliver);
    });
    return { now, sent, meanwhile, watches, endTurn: () => redis.del(store.keys.alerting) };
  }

  it('are not sent by one whose turn has ended', async () => {
    const { now, sent, meanwhile, watches, endTurn } = two();
    now.incidents = [failing];
    meanwhile.push(async () => {
      await endTurn();
      await watches[1]!.look();
    });
    await watches[0]!.look();
    expect(sent).toEqual(['b: began fallback']);
    await watches[0]!.look();
    await watches[1]!.look();
    expect(sent).toHaveLength(1);
  });

  it('are known to one that has had no turn for a while', async () => {
    const { now, sent, watches, endTurn } = two();
    now.incidents = [failing];
    await watches[0]!.look();
    await endTurn();
    now.incidents = [refusing(0.9)];
    now.at += 60_000;
    await watches[1]!.look();
    await watches[1]!.close();
    await watches[0]!.look();
    expect(sent).toEqual(['a: began fallback', 'b: began refused login', 'b: ended fallback']);
  });

  it('are reported by one of them, and by the next one when it ends', async () => {
    const prefix = freshPrefix();
    const sent: { by: number; alert: ConsoleAlert }[] = [];
    const apps: ConsoleApp[] = [];
    for (const by of [0, 1]) {
      const to = (alert: ConsoleAlert) => void sent.push({ by, alert });
      apps.push(await ConsoleApp.start({ limits: { redis: REDIS, prefix }, console: { alerts: { to } } }));
    }
    const watches = apps.map(({ console }) => console.alerts!);
    for (let call = 0; call < 60; call++) await apps[1]!.service.for('things').consume('anna');
    await apps[1]!.console.recorder.flush();
    await watches[0]!.look();
    await watches[1]!.look();
    expect(sent).toMatchObject([{ by: 0, alert: { state: 'began', id: 'refused things', limit: 'things', prefix } }]);
    await apps[0]!.close();
    await watches[1]!.look();
    expect(sent).toHaveLength(1);
    await apps[1]!.close();
  });
});
