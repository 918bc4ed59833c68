import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { TestingModule } from '@nestjs/testing';
import * as undici7 from 'undici';
import type { Agent as AnyAgent, Dispatcher } from 'undici';
import { createRequire } from 'node:module';
import { Readable, Writable } from 'node:stream';
import type { OutboundLimiter, DispatcherOptions } from '../../../lib/integrations/outbound/index.js';
import { type LimiterService, RateLimitArgumentError, RateLimitTimeoutError } from '../../../lib/index.js';
import { until } from '../../support/time/until.js';
import { startLimiters, Upstream } from './upstream.js';

/** undici 8 cannot be loaded by Node before 22.19. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const versions: [string, typeof undici7][] = [['7', undici7]];
if (major > 22 || (major === 22 && minor >= 19)) versions.push(['8', createRequire(import.meta.url)('undici-8')]);

describe.each(versions)(
  'the interceptor of undici %s',
  (version, { Agent, fetch: fetchOfUndici, interceptors, request, stream }) => {
    let app: TestingModule;
    let limiters: LimiterService;
    let outbound: OutboundLimiter;
    let upstream: Upstream;
    let agent: AnyAgent;
    let answers: [status: number, headers: Record<string, string>][];

    beforeEach(async () => {
      ({ app, limiters, outbound } = await startLimiters({
        define: {
          github: { algo: 'fixed-window', rate: 50, interval: '1h' },
          slots: { algo: 'concurrency', limit: 1, ttl: '1m' },
        },
      }));
      agent = new Agent();
      answers = [];
      upstream = await Upstream.start((incoming, response, number) => {
        const [status, headers] = answers.shift() ?? [200, {}];
        if (incoming.url === '/broken') incoming.socket.destroy();
        else response.writeHead(status, headers).end(incoming.url === '/long' ? 'too long' : String(number));
      });
    });

    afterEach(async () => {
      await agent.destroy();
      await upstream.close();
      await app.close();
    });

    const left = async (limit: string) => (await limiters.for(limit).peek('global')).remaining;
    const limited = (limit = 'github', options?: DispatcherOptions): Dispatcher =>
      agent.compose(outbound.dispatcher(limit, options));

    it('lets requests of each kind wait for their turn', async () => {
      const dispatcher = limited();
      const { body, statusCode } = await request(`${upstream.url}/a`, { dispatcher, method: 'POST', body: 'hello' });
      expect([statusCode, await body.text()]).toEqual([200, '1']);
      expect(await (await fetchOfUndici(`${upstream.url}/b`, { dispatcher })).text()).toBe('2');
      const chunks: string[] = [];
      const into = () =>
        new Writable({
          write(chunk: Buffer, _, done) {
            chunks.push(chunk.toString());
            done();
          },
        });
      await stream(`${upstream.url}/c`, { dispatcher, method: 'GET' }, into);
      const own = fetch(`${upstream.url}/d`, { dispatcher } as unknown as RequestInit);
      // Where the undici of Node's own fetch is older than 7, undici 8 knows its requests no more.
      if (version === '8' && Number(process.versions['undici']!.split('.')[0]) < 7) {
        await expect(own).rejects.toMatchObject({
          cause: { message: expect.stringContaining('received one of another undici') },
        });
        return;
      }
      expect(await (await own).text()).toBe('4');
      expect(chunks).toEqual(['3']);
      expect(upstream.received.map(({ url, body: got }) => url + got)).toEqual(['/ahello', '/b', '/c', '/d']);
      expect(await left('github')).toBe(46);
    });

    it('ends waits that are too long, and those that are aborted', async () => {
      await limiters.for('github').consume('global', 50);
      await expect(request(upstream.url, { dispatcher: limited('github', { timeout: '1s' }) })).rejects.toThrow(
        RateLimitTimeoutError,
      );
      const controller = new AbortController();
      for (const send of [request, fetchOfUndici]) {
        const waiting = send(upstream.url, { dispatcher: limited(), signal: controller.signal });
        const rejected = expect(waiting).rejects.toThrow('enough');
        controller.abort(new Error('enough'));
        await rejected;
      }
      expect(upstream.received).toEqual([]);
    });

    it('refuses what undici before 7 would send through it', () => {
      const dispatch = outbound.dispatcher('github')((_request: never, _handler: never) => true);
      const handler = { onConnect: Function.prototype, onError: Function.prototype };
      expect(() => dispatch({} as never, handler as never)).toThrow(RateLimitArgumentError);
    });

    it('counts by what is sent, and settles by what comes back', async () => {
      answers = [[200, { used: '3' }]];
      const dispatcher = limited('github', {
        key: ({ origin }) => `at ${new URL(String(origin)).hostname}`,
        cost: ({ path }) => path.length,
        settle: ({ headers }) => Number(headers.get('used')),
      });
      await (await request(`${upstream.url}/12345`, { dispatcher })).body.text();
      await until(async () => (await limiters.for('github').peek('at 127.0.0.1')).remaining === 47);
      const wrong = limited('github', { cost: () => 0.5 });
      await expect(request(upstream.url, { dispatcher: wrong })).rejects.toThrow(
        "OutboundLimiter.dispatcher.cost for limit 'github': expected the function to return a whole number >= 0, received 0.5",
      );
    });

    it('learns', async () => {
      answers = [
        [200, { 'x-ratelimit-remaining': '12', 'x-ratelimit-reset': String(Math.ceil(Date.now() / 1000) + 60) }],
        [429, { 'retry-after': '20' }],
      ];
      const dispatcher = limited('github', { learn: true });
      await (await request(upstream.url, { dispatcher })).body.text();
      await until(async () => (await left('github')) === 12);
      await (await request(upstream.url, { dispatcher })).body.text();
      await until(async () => !(await limiters.for('github').peek('global')).allowed);
    });

    it('sends what was refused again, and hands on the last refusal', async () => {
      const dispatcher = limited('github', { retry: { attempts: 2 } });
      answers = [[429, { 'retry-after': '0' }]];
      const { body } = await request(upstream.url, { dispatcher, method: 'PUT', body: 'again' });
      expect([await body.text(), upstream.received.map((each) => each.body)]).toEqual(['2', ['again', 'again']]);
      answers = [
        [429, { 'retry-after': '0' }],
        [429, { 'retry-after': '0', 'x-last': 'yes' }],
      ];
      const refused = await request(upstream.url, { dispatcher });
      expect([refused.statusCode, refused.headers['x-last'], await refused.body.text()]).toEqual([429, 'yes', '4']);
      await limiters.for('github').penalize('global', 45);
      answers = [[429, { 'retry-after': '0', 'x-first': 'yes' }]];
      const late = limited('github', { retry: { attempts: 2 }, timeout: '10m' });
      const first = await request(upstream.url, { dispatcher: late });
      expect([first.statusCode, first.headers['x-first'], await first.body.text()]).toEqual([429, 'yes', '5']);
      expect(await left('github')).toBe(0);
    });

    it('settles a refusal after which no time is left for another attempt', async () => {
      await limiters.for('github').consume('global', 49);
      answers = [[429, { 'retry-after': '0', used: '0' }]];
      const dispatcher = limited('github', {
        retry: { attempts: 2 },
        timeout: '10m',
        settle: ({ status, headers }) => (status === 429 ? Number(headers.get('used')) : undefined),
      });
      const { statusCode, body } = await request(upstream.url, { dispatcher });
      expect([statusCode, await body.text()]).toEqual([429, '1']);
      await until(async () => (await left('github')) === 1, 2000);
    });

    it('fails if nobody takes the last refusal', async () => {
      answers = [
        [429, { 'retry-after': '0' }],
        [429, { 'retry-after': '0' }],
      ];
      await limiters.for('github').consume('global', 49);
      const limits = limited('github', { retry: { attempts: 2 }, timeout: '10m' });
      const dispatcher = limits.compose(interceptors.dump({ maxSize: 1 }));
      const { body } = await request(`${upstream.url}/long`, { dispatcher });
      await expect(body.text()).rejects.toThrow('larger than maxSize');
    });

    it('does not send a stream twice', async () => {
      answers = [[429, { 'retry-after': '0' }]];
      const dispatcher = limited('github', { retry: { attempts: 3 } });
      const { statusCode } = await request(upstream.url, { dispatcher, method: 'PUT', body: Readable.from(['once']) });
      expect([statusCode, upstream.received.map(({ body }) => body)]).toEqual([429, ['once']]);
    });

    it('holds units until the body was read', async () => {
      const dispatcher = limited('slots');
      const bodies = Array.from({ length: 3 }, async () => (await request(upstream.url, { dispatcher })).body.text());
      expect((await Promise.all(bodies)).toSorted()).toEqual(['1', '2', '3']);
      await until(async () => (await left('slots')) === 1);
      await expect(request(`${upstream.url}/broken`, { dispatcher })).rejects.toThrow('other side closed');
      await until(async () => (await left('slots')) === 1);
      const { body } = await request(upstream.url, { dispatcher });
      body.destroy();
      body.on('error', () => undefined);
      await until(async () => (await left('slots')) === 1);
    });
  },
);
