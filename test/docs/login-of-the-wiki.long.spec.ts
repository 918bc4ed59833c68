import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, type ExecutionContext, Post, Req, UnauthorizedException } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { InjectLimiter, ipIdentity, Limiter, RateLimit, RateLimitModule } from '../../lib/index.js';
import { untriedCode } from './rows.js';
import { TriedApp } from './tried-app.js';

interface Credentials {
  name?: string;
  password: string;
}

interface Request {
  ip: string;
  body?: Credentials;
}

const requestOf = (context: ExecutionContext) => context.switchToHttp().getRequest<Request>();

function authorise(body: Credentials | undefined): Promise<void> {
  return body?.password === 'right' ? Promise.resolve() : Promise.reject(new UnauthorizedException());
}

/** A name however it is written, and an IPv6 client by its /64. Without either, nothing: then the address counts. */
function nameAndAddress({ ip, body }: Request): string | undefined {
  const address = ipIdentity(ip);
  if (typeof body?.name !== 'string' || address === undefined) return undefined;
  return `${address} ${body.name.normalize('NFKC').trim().toLowerCase()}`;
}

@Controller()
class LoginController {
  constructor(@InjectLimiter('login-by-name-and-address') private readonly inARow: Limiter) {}

  @Post('login')
  @RateLimit('login-by-address', 'login-by-name-and-address')
  async login(@Req() request: Request) {
    await authorise(request.body); // throws an UnauthorizedException
    await this.inARow.reset(nameAndAddress(request)!);
  }
}

const ours = RateLimitModule.forRoot({
  define: {
    'login-by-address': { algo: 'fixed-window', rate: 100, interval: '1d', blockFor: '1d', count: 'failed' },
    'login-by-name-and-address': {
      algo: 'fixed-window',
      rate: 10,
      interval: '90d', // since the first wrong one
      blockFor: '1h',
      count: 'failed',
      key: (context) => nameAndAddress(requestOf(context)),
    },
  },
});

interface Answer {
  status: number;
  retryAfter: string | null;
}

/** The login of the wiki of rate-limiter-flexible, with the names and the order of its calls. */
class TheirLogin {
  private readonly limiterSlowBruteByIP = new RateLimiterMemory({
    keyPrefix: 'login_fail_ip_per_day',
    points: 100,
    duration: 60 * 60 * 24,
    blockDuration: 60 * 60 * 24,
  });
  private readonly limiterConsecutiveFailsByUsernameAndIP = new RateLimiterMemory({
    keyPrefix: 'login_fail_consecutive_username_and_ip',
    points: 10,
    // 90 days there, with Redis; a timer lasts no longer than 24.
    duration: 60 * 60 * 24 * 20,
    blockDuration: 60 * 60,
  });

  async try(name: string, password: string, ip: string): Promise<Answer> {
    const key = `${name}_${ip}`;
    const [resUsernameAndIP, resSlowByIP] = await Promise.all([
      this.limiterConsecutiveFailsByUsernameAndIP.get(key),
      this.limiterSlowBruteByIP.get(ip),
    ]);
    const refusal = [[resSlowByIP, 100] as const, [resUsernameAndIP, 10] as const].find(
      ([res, points]) => res !== null && res.consumedPoints > points,
    );
    if (refusal) return refused(refusal[0]!);
    if (password !== 'right') {
      try {
        await Promise.all([
          this.limiterSlowBruteByIP.consume(ip),
          this.limiterConsecutiveFailsByUsernameAndIP.consume(key),
        ]);
        return { status: 401, retryAfter: null };
      } catch (res) {
        return refused(res as RateLimiterRes);
      }
    }
    if (resUsernameAndIP !== null) await this.limiterConsecutiveFailsByUsernameAndIP.delete(key);
    return { status: 201, retryAfter: null };
  }
}

function refused({ msBeforeNext }: RateLimiterRes): Answer {
  return { status: 429, retryAfter: String(Math.round(msBeforeNext / 1000) || 1) };
}

/** Seconds that pass before a try, its password, and how often it is made. */
type Try = readonly [seconds: number, password: 'right' | 'wrong', times: number, name?: string];

const histories: [string, Try[]][] = [
  [
    'ten, then an hour, then ten',
    [
      [0, 'wrong', 12],
      [1800, 'wrong', 2],
      [1799, 'wrong', 1],
      [1, 'wrong', 12],
    ],
  ],
  [
    'a success in between',
    [
      [0, 'wrong', 9],
      [60, 'right', 1],
      [0, 'wrong', 11],
      [3600, 'right', 1],
      [0, 'wrong', 3],
    ],
  ],
  [
    'days apart',
    [
      [0, 'wrong', 5],
      [86_400 * 10, 'wrong', 6],
      [3600, 'wrong', 1],
    ],
  ],
  [
    'the right one while it is locked',
    [
      [0, 'wrong', 11],
      [10, 'right', 1],
      [3590, 'right', 1],
    ],
  ],
  [
    'many names of one address',
    Array.from({ length: 12 }, (_, each): Try => [1, 'wrong', 9, `name${each}`]).concat([
      [86_391, 'wrong', 1],
      [10, 'wrong', 1],
    ]),
  ],
];

describe("the login of rate-limiter-flexible's wiki, moved over", () => {
  let app: TriedApp | undefined;
  afterEach(async () => {
    jest.useRealTimers();
    await app?.close();
    app = undefined;
  });

  it('stands in the guide as it is tried', () => {
    const [guide, spec] = ['docs/migrating-from-rate-limiter-flexible.md', 'test/docs/login-of-the-wiki.long.spec.ts'];
    expect(untriedCode(guide, spec)).toEqual([]);
  });

  it.each(histories)('answers as there: %s', async (_, tries) => {
    jest.useFakeTimers({ now: Date.parse('2026-09-21T10:00:00Z'), doNotFake: ['nextTick', 'queueMicrotask'] });
    const their = new TheirLogin();
    const expected: Answer[] = [];
    for (const [seconds, password, times, name = 'ann'] of tries) {
      jest.advanceTimersByTime(seconds * 1000);
      for (let i = 0; i < times; i++) expected.push(await their.try(name, password, '203.0.113.7'));
    }
    jest.useRealTimers();

    app = await TriedApp.start(
      { imports: [ours], controllers: [LoginController] },
      { fastify: new FastifyAdapter({ trustProxy: '127.0.0.1' }) },
    );
    const answers: Answer[] = [];
    for (const [seconds, password, times, name = 'ann'] of tries) {
      app.clock.advance(seconds * 1000);
      for (let i = 0; i < times; i++) {
        const response = await app.post('/login', { name, password }, { 'x-forwarded-for': '203.0.113.7' });
        answers.push({ status: response.status, retryAfter: response.headers.get('retry-after') });
      }
    }
    expect(answers).toEqual(expected);
  });
});
