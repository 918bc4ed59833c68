import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Body,
  Controller,
  type ExecutionContext,
  HttpCode,
  Injectable,
  Module,
  Post,
  UnauthorizedException,
} from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { InjectLimiter, type KeyResolver, Limiter, RateLimit, RateLimitModule } from '../../lib/index.js';
import { untriedCode } from './rows.js';
import { TriedApp } from './tried-app.js';

/** Finds an account as MySQL's usual collations do: without case, accents, and characters that nobody sees. */
@Injectable()
class Accounts {
  readonly lookups: unknown[] = [];

  findByEmail(email: unknown): Promise<{ id: number } | undefined> {
    this.lookups.push(email);
    const folded =
      typeof email === 'string' &&
      email
        .normalize('NFKD')
        .replaceAll(/[\p{M}\p{Cf}]/gu, '')
        .toLowerCase();
    return Promise.resolve(folded === 'ann@example.com' ? { id: 7 } : undefined);
  }
}

interface LoginRequest {
  body?: { email?: unknown };
}

export function accountOf(email: unknown): string | undefined {
  if (typeof email !== 'string' || email.length > 254) return undefined; // then the address counts
  return `login:${email.normalize('NFKC').trim().toLowerCase()}`;
}

@Injectable()
export class AccountKey implements KeyResolver {
  constructor(private readonly accounts: Accounts) {}

  async resolve(context: ExecutionContext) {
    const { email } = context.switchToHttp().getRequest<LoginRequest>().body ?? {};
    const account = await this.accounts.findByEmail(email);
    return account === undefined ? accountOf(email) : `account:${account.id}`;
  }
}

/** The guide's limits. */
const guide = () =>
  RateLimitModule.forRoot({
    define: {
      // One address that tries many passwords.
      'login-by-address': { algo: 'sliding-log', rate: 5, interval: '15m', count: 'failed', blockFor: '15m' },
      // Many addresses that try one account.
      'login-by-account': {
        algo: 'sliding-log',
        rate: 20,
        interval: '1h',
        count: 'failed',
        key: (context) => accountOf(context.switchToHttp().getRequest<LoginRequest>().body?.email),
      },
      // Everyone together: a flood from everywhere.
      'login-by-all': { algo: 'gcra', rate: 100, interval: '1s', key: 'global' },
    },
  });

interface Credentials {
  email: string;
  password: string;
}

function authorise({ password }: Credentials): void {
  if (password !== 'right') throw new UnauthorizedException();
}

@Controller()
class LoginController {
  constructor(
    @InjectLimiter('login-by-account') private readonly byAccount: Limiter,
    @InjectLimiter('login-by-address') private readonly byAddress: Limiter,
  ) {}

  @Post('login')
  @RateLimit('login-by-address', 'login-by-account', 'login-by-all')
  @HttpCode(200)
  async login(@Body() body: Credentials) {
    const { email } = body;
    authorise(body);
    await this.byAccount.reset(accountOf(email)!); // after a successful login
  }

  @Post('operator')
  async operator() {
    await this.byAddress.reset('ip:203.0.113.7');
    await this.byAddress.unblock('ip:203.0.113.7'); // also starts fresh
    await this.byAddress.block('ip:203.0.113.7', '1d');
    await this.byAddress.penalize('ip:203.0.113.7', 3); // a guess on a honeypot account costs more
  }
}

@Controller()
class FoundController {
  @Post('login')
  @RateLimit({ algo: 'sliding-log', rate: 20, interval: '1h', count: 'failed', key: AccountKey })
  @HttpCode(200)
  login(@Body() body: Credentials) {
    authorise(body);
  }
}

@Module({ providers: [Accounts, AccountKey], exports: [Accounts, AccountKey] })
class AccountsModule {}

/** Each letter large or small. */
const cases = (count: number) =>
  Array.from({ length: count }, (_, bits) =>
    Array.from('ann@example.com', (letter, index) => ((bits >> index) & 1 ? letter.toUpperCase() : letter)).join(''),
  );

describe('protecting a login', () => {
  let app: TriedApp | undefined;
  let address = 0;
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  const start = async (metadata: Parameters<typeof TriedApp.start>[0]) => {
    // The tests name the address; the guides say that nobody else may.
    app = await TriedApp.start(metadata, { fastify: new FastifyAdapter({ trustProxy: true }) });
  };
  const post = (body: unknown, from = `203.0.${Math.floor(++address / 250)}.${address % 250}`) =>
    app!.post('/login', body, { 'x-forwarded-for': from });
  /** How many of these guesses reach the password, each from another address. */
  const guesses = async (emails: readonly unknown[]) => {
    const statuses: number[] = [];
    for (const email of emails) {
      statuses.push((await post({ email, password: 'wrong' })).status);
      app!.clock.advance('10ms');
    }
    return statuses.filter((status) => status === 401).length;
  };
  it('has no code that is not tried', () => {
    expect(
      untriedCode('docs/guides/protecting-a-login.md', 'test/docs/protecting-a-login.long.spec.ts', 'started'),
    ).toEqual([]);
  });

  it('counts an account however it is written', async () => {
    await start({ imports: [guide()], controllers: [LoginController] });
    const spaced = [' ann@example.com', 'ann@example.com\t', 'ａｎｎ@example.com', 'Ann@Example.Com '];
    expect(await guesses([...spaced, ...cases(40)])).toBe(20);
    expect(await guesses(['bob@example.com'])).toBe(1);
  });

  it('counts the address where there is no account, whatever the body is', async () => {
    await start({ imports: [guide()], controllers: [LoginController] });
    const bodies = [
      {},
      { email: null },
      { email: ['ann@example.com'] },
      { email: { a: 1 } },
      { email: 'a'.repeat(300) },
      [],
    ];
    for (const body of bodies) expect([401, 429]).toContain((await post(body, '198.51.100.1')).status);
    expect((await post({}, '198.51.100.1')).status).toBe(429);
    expect((await post({}, '198.51.100.2')).status).toBe(401);
  });

  it('counts the account that a forgiving database finds', async () => {
    await start({ imports: [AccountsModule, RateLimitModule.forRoot()], controllers: [FoundController] });
    const alike = ['änn@example.com', 'ann\u200b@example.com', 'ánn@éxample.com', 'a\u00adnn@example.com'];
    expect(await guesses([...alike, ...cases(30)])).toBe(20);
    expect(await guesses(Array.from({ length: 30 }, () => 'nobody@example.com'))).toBe(20);
  });

  it('does not let an attacker forget his guesses by logging in to an account of his own', async () => {
    await start({ imports: [guide()], controllers: [LoginController] });
    const attacker = '198.51.100.7';
    const statuses: number[] = [];
    for (let guess = 0; guess < 12; guess++) {
      if (guess % 3 === 0) await post({ email: 'mallory@example.com', password: 'right' }, attacker);
      statuses.push((await post({ email: `victim${guess}@example.com`, password: 'wrong' }, attacker)).status);
    }
    expect(statuses.filter((status) => status === 401)).toHaveLength(5);
  });

  it('keeps an address out for exactly 15 minutes', async () => {
    await start({ imports: [guide()], controllers: [LoginController] });
    const wrong = { email: 'ann@example.com', password: 'wrong' };
    for (let i = 0; i < 5; i++) expect((await post(wrong, '198.51.100.8')).status).toBe(401);
    expect((await post(wrong, '198.51.100.8')).headers.get('retry-after')).toBe('900');
    app!.clock.advance('14m');
    expect((await post(wrong, '198.51.100.8')).headers.get('retry-after')).toBe('60');
    app!.clock.advance('1m');
    expect((await post(wrong, '198.51.100.8')).status).toBe(401);
  });

  it('lets an operator keep somebody out', async () => {
    await start({ imports: [guide()], controllers: [LoginController] });
    await app!.post('/operator', {});
    expect(
      (await post({ email: 'ann@example.com', password: 'right' }, '203.0.113.7')).headers.get('retry-after'),
    ).toBe('86400');
  });
});
