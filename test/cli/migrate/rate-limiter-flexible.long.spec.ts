import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ensureBuilt } from '../../support/processes/built.js';
import { AppFolder, compilerErrors, type Files, runApp } from './moved-apps.js';

const MANIFEST = `{
  "dependencies": {
    "rate-limiter-flexible": "^5.0.0"
  }
}
`;

/** A login that counts tries by address, and wrong passwords by name. */
const LOGIN = `import { HttpException, Injectable } from '@nestjs/common';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

@Injectable()
export class LoginService {
  private readonly byAddress = new RateLimiterMemory({
    keyPrefix: 'login-by-address',
    points: 4,
    duration: 60 * 60, // an hour
  });
  private readonly failures: RateLimiterMemory;

  constructor() {
    this.failures = new RateLimiterMemory({ points: 2, duration: 60, blockDuration: 15 * 60 });
  }

  async login(address: string, name: string, password: string) {
    try {
      await this.byAddress.consume(address);
    } catch (refused: any) {
      throw new HttpException({ wait: Math.ceil(refused.msBeforeNext / 1000) }, 429);
    }
    const before = await this.failures.get(name);
    if (before !== null && before.remainingPoints <= 0) return 'locked';
    if (password === 'right') {
      await this.failures.delete(name);
      return 'welcome';
    }
    try {
      const { remainingPoints } = await this.failures.consume(name, 1);
      return \`wrong, \${remainingPoints} left\`;
    } catch (error) {
      if (error instanceof RateLimiterRes) return \`locked for \${Math.round(error.msBeforeNext / 1000)} s\`;
      throw error;
    }
  }
}
`;
const APP_MODULE = `import { Module } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-sluice';
import { LoginService } from './login.service.js';

@Module({ imports: [RateLimitModule.forRoot()], providers: [LoginService] })
export class AppModule {}
`;
const SCRIPT = `import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './src/app.module.js';
import { LoginService } from './src/login.service.js';

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const logins = app.get(LoginService);
const answers = [];
for (const [address, name, password] of [
  ['a', 'ada', 'wrong'], ['b', 'ada', 'right'], ['c', 'ada', 'wrong'], ['d', 'ada', 'wrong'], ['e', 'ada', 'right'],
  ['a', 'bob', 'right'], ['a', 'bob', 'right'], ['a', 'bob', 'right'], ['a', 'bob', 'right'],
]) {
  answers.push(await logins.login(address, name, password).catch((error) => error.getResponse()));
}
console.log(JSON.stringify(answers));
await app.close();
`;

const consuming = (limiter: string) => `try {
      await this.${limiter}.consume(key);
    } catch {
      return '${limiter}';
    }`;

let folder: AppFolder | undefined;
afterEach(() => {
  folder?.remove();
  folder = undefined;
});

async function migrated(files: Files): Promise<{ stdout: string; after: Files }> {
  folder = new AppFolder({ 'package.json': MANIFEST, ...files });
  const { stdout, stderr, code } = await folder.migrate();
  if (code !== 0) throw new Error(stderr);
  return { stdout, after: folder.files() };
}

describe('services with rate-limiter-flexible', () => {
  beforeAll(() => ensureBuilt(), 500_000);

  it('get their limiters from LimiterService, and answer as before', async () => {
    const before = { 'src/login.service.ts': LOGIN, 'src/app.module.ts': APP_MODULE };
    const { stdout, after } = await migrated(before);
    expect(stdout).not.toContain('Left');
    expect(after['src/login.service.ts']).not.toContain('rate-limiter-flexible');
    expect(after['src/login.service.ts']).toContain(
      "this.byAddress = limiters.for({ name: 'login-by-address', algo: 'fixed-window', rate: 4, interval: '1h' });",
    );
    expect(after['src/login.service.ts']).toContain(
      "this.failures = limiters.for({ name: 'failures', algo: 'fixed-window', rate: 2, interval: '1m', blockFor: '15m' });",
    );
    expect(after['package.json']).not.toContain('rate-limiter-flexible');
    expect(compilerErrors({ after })).toEqual([]);
    const answers = JSON.parse(await runApp(before, SCRIPT)) as unknown[];
    expect(answers).toEqual([
      'wrong, 1 left',
      'welcome',
      'wrong, 1 left',
      'wrong, 0 left',
      'locked',
      'welcome',
      'welcome',
      'welcome',
      { wait: 3600 },
    ]);
    expect(JSON.parse(await runApp(after, SCRIPT))).toEqual(answers);
  }, 240_000);

  it('are converted once', async () => {
    const { after } = await migrated({ 'src/login.service.ts': LOGIN, 'src/app.module.ts': APP_MODULE });
    expect((await folder!.migrate()).stdout).toBe('Nothing to convert.\n');
    expect(folder!.files()).toEqual(after);
  });

  it('count on Redis, with an insurance, blocks and promises', async () => {
    const { stdout, after } = await migrated({
      'src/otp.guard.ts': `import { CanActivate, ExecutionContext, Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';

@Injectable()
export class OtpGuard implements CanActivate {
  private limiter: RateLimiterRedis;

  constructor(
    private readonly redis: Redis,
  ) {
    this.limiter = new RateLimiterRedis({
      storeClient: this.redis,
      keyPrefix: 'otp',
      points: Number(process.env['OTP_TRIES']),
      duration: 300,
      inMemoryBlockOnConsumed: 5,
      insuranceLimiter: new RateLimiterMemory({ points: 1, duration: 300 }),
    });
  }

  canActivate(context: ExecutionContext) {
    const request = context.switchToHttp().getRequest();
    return this.limiter
      .consume(request.ip, 2)
      .then((result) => result.consumedPoints > 0)
      .catch((refused) => {
        request.res.header('Retry-After', String(refused.msBeforeNext / 1000));
        return false;
      });
  }

  async ban(ip: string) {
    await this.limiter.block(ip, 60 * 60);
    await this.limiter.penalty(ip);
    await this.limiter.reward(ip, 2);
  }
}
`,
    });
    expect(compilerErrors({ after })).toEqual([]);
    const text = after['src/otp.guard.ts']!;
    expect(text).toContain(`    private readonly redis: Redis,
    limiters: LimiterService,
  ) {
    this.limiter = limiters.for({ name: 'otp', algo: 'fixed-window', rate: Number(process.env['OTP_TRIES']), interval: '5m' });`);
    expect(text).toContain('consumeOrThrow(this.limiter, request.ip, 2)');
    expect(text).toContain('(result.quota - result.remaining) > 0');
    expect(text).toContain('refused.retryAfterMs / 1000');
    expect(text).toContain("await this.limiter.reset(ip); await this.limiter.block(ip, '1h');");
    expect(text).toContain('await this.limiter.penalize(ip, 1);\n    await this.limiter.refund(ip, 2);');
    expect(stdout).toContain('import RateLimitModule.forRoot({ redis: … }) once');
  });

  it('may consume twice in a function', async () => {
    const { after } = await migrated({
      'src/api.service.ts': `import { Injectable } from '@nestjs/common';
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import { Redis } from 'ioredis';

const options = { points: 5, duration: 60, blockDuration: 30 };

@Injectable()
export class ApiService {
  private readonly local = new RateLimiterMemory(options);
  private readonly shared = new RateLimiterRedis({ storeClient: new Redis(), points: 100, duration: 0.5 });

  async call(key: string) {
    ${consuming('local')}
    ${consuming('shared')}
    return 'passed';
  }
}
`,
    });
    expect(compilerErrors({ after })).toEqual([]);
    const text = after['src/api.service.ts']!;
    expect(text).toContain(
      "interval: options.duration * 1000, blockFor: options.blockDuration * 1000, scope: 'instance' }",
    );
    expect(text).toContain('rate: 100, interval: 500 }');
    expect(text).toContain(
      "const decision = await this.local.consume(key);\n    if (!decision.allowed) {\n      return 'local';",
    );
    expect(text).toContain('await consumeOrThrow(this.shared, key);');
  });

  it('keep what cannot be known, with the limit that it would be', async () => {
    const text = `import { RateLimiterMemory, RateLimiterUnion, RateLimiterPostgres } from 'rate-limiter-flexible';

const limiter = new RateLimiterMemory({ points: 5, duration: 1 });
const union = new RateLimiterUnion(limiter, limiter);
const stored = new RateLimiterPostgres({ storeClient: {} });

export const middleware = (req: any, res: any, next: () => void) =>
  Promise.all([limiter.consume(req.ip), union.consume(req.ip), stored.consume(req.ip)])
    .then(() => next())
    .catch((refused) => res.status(429).send(String(refused.msBeforeNext)));
`;
    const { stdout, after } = await migrated({ 'src/middleware.ts': text });
    expect(after).toEqual({ 'package.json': MANIFEST, 'src/middleware.ts': text });
    expect(stdout).toContain(
      "src/middleware.ts:3 new RateLimiterMemory: it isn't a property of a class: inject LimiterService, and use limiters.for({ name: 'limit', algo: 'fixed-window', rate: 5, interval: '1s' })",
    );
    expect(stdout).toContain('src/middleware.ts:4 new RateLimiterUnion: use limiters.check([{ limit, key }, …])');
    expect(stdout).toContain('src/middleware.ts:5 new RateLimiterPostgres: it has no counterpart: implement a Store');
  });
});
