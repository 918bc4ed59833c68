import { afterEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, Controller, Get, type INestApplication, type LoggerService } from '@nestjs/common';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { Test } from '@nestjs/testing';
import { type LimitDefinition, LimiterService, RateLimit, RateLimitModule } from '../../lib/index.js';
import { rateLimitSockets } from '../../lib/integrations/sockets/index.js';
import { ConsoleApp, type Overview } from '../console/console-app.js';
import { ChatGateway, shake } from '../integrations/sockets/socket-app.js';
import { PlainAdapter, type PlainOptions } from '../support/http/plain-adapter.js';
import { until } from '../support/time/until.js';

const two = { algo: 'fixed-window', rate: 2, interval: '1h' } as const;
const slots = { name: 'slots', algo: 'concurrency', limit: 1, ttl: '1h', key: 'global' } satisfies LimitDefinition;

@Controller()
class ReportsController {
  @Get('plain')
  @RateLimit({ ...two, name: 'plain' })
  plain() {
    return 'plain';
  }

  @Get('by-header')
  @RateLimit({ ...two, name: 'by-header', key: 'header:X-API-Key', onMissingKey: 'refuse' })
  byHeader() {
    return 'by header';
  }

  @Get('slot')
  @RateLimit(slots)
  slot() {
    return 'slot';
  }
}

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** An app on an adapter that Nest does not bring, and what it logs about limits. */
async function start(options: PlainOptions, setUp: (app: INestApplication) => unknown = () => undefined) {
  const lines: string[] = [];
  const keep = (message: unknown, ...rest: unknown[]) => {
    if (rest.at(-1) === 'RateLimit') lines.push(String(message));
  };
  const logger: LoggerService = { log: keep, error: keep, warn: keep };
  const define = { handshakes: { ...two } };
  const testing = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ define })],
    controllers: [ReportsController],
    providers: [ChatGateway],
  }).compile();
  testing.useLogger(logger);
  const app = testing.createNestApplication(new PlainAdapter(options));
  await setUp(app);
  await app.listen(0, '127.0.0.1');
  cleanups.push(() => app.close());
  const url = await app.getUrl();
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(url + path, { headers: { connection: 'close', ...headers } });
  return { app, url, get, lines };
}

/** A guard of those who send a header. */
function may(name: string): CanActivate {
  return {
    canActivate: (context) => context.switchToHttp().getRequest<{ headers: Headers }>().headers.get(name) !== null,
  };
}

/** Limits the handshakes of an app. */
function limited(options: { address?: () => string } = {}) {
  return (app: INestApplication) => {
    app.useWebSocketAdapter(rateLimitSockets(app, new IoAdapter(app), { handshakes: 'handshakes', ...options }));
  };
}

describe('an HTTP adapter whose responses hide those of Node', () => {
  it('has limits without headers, and a line in the log that says so once', async () => {
    const { get, lines } = await start({ hidesResponses: true });
    const responses = [await get('/plain'), await get('/plain'), await get('/plain')];
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(responses.map(({ headers }) => headers.get('ratelimit') ?? headers.get('retry-after'))).toEqual([
      null,
      null,
      null,
    ]);
    expect(lines).toEqual([
      "the responses of the HTTP adapter (PlainResponse) have no method that sets headers, and no Node response as 'raw', so " +
        'limits set no headers, not even Retry-After',
    ]);
  });

  it('releases leases when handlers end, and says so once', async () => {
    const { get, lines } = await start({ hidesResponses: true });
    for (let request = 0; request < 3; request++) expect((await get('/slot')).status).toBe(200);
    expect(lines.filter((line) => line.includes('ends with its handler'))).toEqual([
      "the responses of the HTTP adapter (PlainResponse) are not Node responses and have none as 'raw', so a request ends with its handler: " +
        "'concurrency' and 'count' cannot see that its response is still being sent, or that its client has left",
    ]);
  });

  it('logs nothing where they do not', async () => {
    const { get, lines } = await start({});
    expect([(await get('/plain')).headers.get('ratelimit'), (await get('/slot')).status]).toEqual([
      expect.stringContaining('"plain";r=1'),
      200,
    ]);
    expect(lines).toEqual([]);
  });

  it('serves the data of the console, and says what it cannot', async () => {
    const app = await ConsoleApp.start({ adapter: new PlainAdapter({ hidesResponses: true }) });
    cleanups.push(() => app.close());
    expect(await app.read<Overview>('overview')).toMatchObject({ stepMs: 1000 });
    const response = await app.get('ops/limits/api/live');
    expect([response.status, await response.json()]).toEqual([
      501,
      expect.objectContaining({ title: 'Not Implemented', detail: expect.stringContaining("have none as 'raw'") }),
    ]);
  });
});

describe('an HTTP adapter whose requests have the headers of the Web', () => {
  it('counts by them', async () => {
    const { get } = await start({ hasWebHeaders: true });
    const by = async (key: string) => (await get('/by-header', { 'x-api-key': key })).status;
    expect([await by('a'), await by('a'), await by('a'), await by('b')]).toEqual([200, 200, 429, 200]);
    expect((await get('/by-header')).status).toBe(400);
  });

  it('has a console that asks for the same headers', async () => {
    const adapter = new PlainAdapter({ hasWebHeaders: true });
    const app = await ConsoleApp.start({ adapter, console: { guards: [may('x-user')], write: [may('x-admin')] } });
    cleanups.push(() => app.close());
    expect((await app.get('ops/limits/api/overview')).status).toBe(200);
    expect((await app.get('ops/limits/api/overview', { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    const change = { limit: 'things', identity: 'anna', duration: '1m', reason: 'a test' };
    expect((await app.post('keys/block', change, { 'x-admin': 'yes', 'x-rate-limit-console': '0' })).status).toBe(403);
  });
});

describe('a third HTTP adapter', () => {
  it('serves the page, the files, the data and the changes of the console', async () => {
    const app = await ConsoleApp.start({ adapter: new PlainAdapter() });
    cleanups.push(() => app.close());
    const page = await app.get('ops/limits');
    const links = [...(await page.text()).matchAll(/(?:src|href)="(limits\/[^"]+)"/g)].map(([, link]) => link!);
    expect([page.status, links.length]).toEqual([200, 2]);
    for (const link of links) {
      const file = await app.get(`ops/${link}`, { 'accept-encoding': 'br' });
      expect([file.status, file.headers.get('content-encoding')]).toEqual([200, 'br']);
      expect((await file.text()).length).toBeGreaterThan(100);
    }
    const abort = new AbortController();
    const live = await fetch(`${app.url}/ops/limits/api/live`, { headers: { 'x-user': 'ops' }, signal: abort.signal });
    const { value } = await live.body!.getReader().read();
    expect([live.status, new TextDecoder().decode(value)]).toEqual([200, expect.stringContaining('event: tick')]);
    abort.abort();
    await until(() => app.console.live.size === 0);
    expect((await app.get('things/1')).status).toBe(200);
  });

  it('counts handshakes by who connects, and logs once that it may be a proxy', async () => {
    const { app, url, lines } = await start({ trustProxy: true }, limited());
    for (const address of ['203.0.113.7', '203.0.113.8', '203.0.113.9']) {
      (await shake('socket.io', url, { 'X-Forwarded-For': address })).close();
    }
    const left = await app.get(LimiterService).for('handshakes').peek('ip:127.0.0.1');
    expect([left.remaining, lines]).toEqual([0, [expect.stringContaining("Set the option 'address'")]]);

    const own = await start({ trustProxy: true }, limited({ address: () => '203.0.113.7' }));
    (await shake('socket.io', own.url, { 'X-Forwarded-For': '203.0.113.9' })).close();
    const counted = await own.app.get(LimiterService).for('handshakes').peek('ip:203.0.113.7');
    expect([counted.remaining, own.lines]).toEqual([1, []]);
  });
});
