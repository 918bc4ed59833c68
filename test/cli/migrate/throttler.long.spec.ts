import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AppFolder, compilerErrors, type Files, usesOf } from './moved-apps.js';
import { throttledApps, type ThrottledApp } from './throttled-apps.js';

const PACKAGES = /throttler/;

/** All files of an application as it stands. */
function filesOf({ version, files, packages }: ThrottledApp): Files {
  const dependencies = { '@nestjs/common': '^11.0.0', '@nestjs/throttler': version, ...packages };
  const sources = Object.entries(files).map(([name, text]) => [`src/${name}`, text]);
  return {
    'package.json': `${JSON.stringify({ name: 'app', dependencies }, null, 2)}\n`,
    ...Object.fromEntries(sources),
  };
}

describe('applications with @nestjs/throttler', () => {
  const moved: Record<string, { before: Files; after: Files; stdout: string; again: string; third: Files }> = {};

  beforeAll(async () => {
    for (const [name, app] of Object.entries(throttledApps)) {
      const before = filesOf(app);
      const folder = new AppFolder(before);
      const { stdout, stderr, code } = await folder.migrate();
      if (code !== 0) throw new Error(`${name}: ${stderr}`);
      const after = folder.files();
      const again = await folder.migrate();
      moved[name] = { before, after, stdout, again: again.stdout, third: folder.files() };
      folder.remove();
    }
  }, 240_000);

  afterAll(() => {
    if (process.env['SHOW_MOVED'] === undefined) return;
    for (const [name, { after, stdout }] of Object.entries(moved)) {
      const texts = Object.entries(after).map(([path, text]) => `--- ${path}\n${text}`);
      process.stdout.write(`\n======== ${name}\n${texts.join('\n')}\n${stdout}`);
    }
  });

  /** How often the applications name what the packages export. */
  function countOf(key: 'before' | 'after'): number {
    return Object.values(moved).reduce((sum, one) => sum + usesOf(one[key], PACKAGES), 0);
  }

  it('are twenty, and compile once they are moved', () => {
    expect(Object.keys(throttledApps)).toHaveLength(20);
    expect(compilerErrors(Object.fromEntries(Object.entries(moved).map(([name, { after }]) => [name, after])))).toEqual(
      [],
    );
  }, 240_000);

  it('have at least nine tenths of their uses converted', () => {
    expect(countOf('before')).toBeGreaterThan(100);
    expect(1 - countOf('after') / countOf('before')).toBeGreaterThanOrEqual(0.9);
  });

  it.each(Object.keys(throttledApps))('%s: a second run changes nothing', (name) => {
    expect(moved[name]!.third).toEqual(moved[name]!.after);
  });

  it.each<[string, string, string[]]>([
    [
      'version 4, in seconds',
      'src/feedback.controller.ts',
      [
        "@RateLimit({ name: 'default', algo: 'sliding-log', rate: 5, interval: '1m' })",
        'interval: LOGIN_SECONDS * 1000 })',
        "@SkipRateLimit()\n  @Get('some')",
      ],
    ],
    [
      'version 4, in seconds',
      'src/app.module.ts',
      ["headers: 'legacy'", "interval: '1m', // seconds", 'perRoute: true }]'],
    ],
    [
      'three named throttlers',
      'src/app.module.ts',
      ['headers: headersByName', "name: 'short',\n          algo: 'sliding-log',\n          interval: '1s',"],
    ],
    [
      'three named throttlers',
      'src/employees.controller.ts',
      [
        "@SkipRateLimit('short', 'long')",
        "@RateLimit({ name: 'short', algo: 'sliding-log', interval: '1s', rate: 1 })",
      ],
    ],
    [
      'counters in Redis, of an injected service',
      'src/app.module.ts',
      [
        "algo: 'fixed-window', interval: '15m', rate: 30, blockFor: '30m'",
        'redis: redisService.getClient()',
        "message: 'Too many tries. Come back later.'",
        'guard: false',
        '{ provide: APP_GUARD, useClass: RateLimitGuard }',
      ],
    ],
    [
      'constants of a file',
      'src/auth.controller.ts',
      ['rate: THROTTLE.AUTH.limit', 'blockFor: THROTTLE.AUTH.blockDuration'],
    ],
    [
      'tenants, and staff that is not limited',
      'src/app.module.ts',
      ["key: StaffAwareThrottlerGuard, onMissingKey: 'skip'", 'StaffAwareThrottlerGuard, {'],
    ],
    ['tenants, and staff that is not limited', 'src/staff-aware-throttler.guard.ts', ['return false;']],
    [
      'REST and GraphQL behind a proxy',
      'src/app.module.ts',
      ['key: GqlThrottlerGuard', "from './guards/gql-throttler.guard'"],
    ],
    ['limits that nothing applies', 'src/app.module.ts', ["guard: 'custom'"]],
    [
      'keys, waits and blocks of its own',
      'src/app.module.ts',
      [
        'key: async (context: ExecutionContext) => { const req = context.switchToHttp().getRequest(); return req.user?.id ?? req.ip; }',
        "rate: 10, blockFor: '5m' }]",
        'ipv6Prefix: 56',
      ],
    ],
  ])('%s: %s keeps units, names and blocks', (name, file, parts) => {
    for (const part of parts) expect(moved[name]!.after[file]).toContain(part);
  });

  it.each([
    ['limits that nothing applies', "no throttler of the module is named 'auth', so nothing was limited by it"],
    ['limits that nothing applies', 'no ThrottlerGuard is bound anywhere, so nothing was limited'],
    ['three named throttlers', "no throttler of the module is named 'default', so @SkipThrottle skipped nothing there"],
    [
      'a guard that decides by itself',
      'CloudThrottlerGuard stays, and nothing uses it any more: it overrides handleRequest()',
    ],
    ['options of a function', 'RateLimitModule is set up once for an app'],
  ])('%s: says that %s', (name, part) => {
    expect(moved[name]!.stdout).toContain(part);
  });
});

/** An application whose global guard counts by address, and with one controller that has a guard of its own. */
function besideAnother(controller: string): Files {
  return filesOf({
    version: '^6.4.0',
    files: {
      'app.module.ts': `import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';

@Module({
  imports: [ThrottlerModule.forRoot([{ ttl: 60_000, limit: 100 }])],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`,
      'behind-proxy.guard.ts': `import { Injectable } from '@nestjs/common';
import { ThrottlerGuard } from '@nestjs/throttler';

@Injectable()
export class ThrottlerBehindProxyGuard extends ThrottlerGuard {
  protected async getTracker(req: Record<string, any>): Promise<string> {
    return req.ips.length ? req.ips[0] : req.ip;
  }
}
`,
      'orders.controller.ts': `import { Controller, Get, Post, UseGuards } from '@nestjs/common';
import { SkipThrottle, Throttle } from '@nestjs/throttler';
import { ThrottlerBehindProxyGuard } from './behind-proxy.guard';

${controller}`,
    },
  });
}

describe('a guard with getTracker() beside ThrottlerGuard', () => {
  const LIST = '  @Get()\n  list() {}\n';
  const ADD = '  @Throttle({ default: { limit: 3, ttl: 60_000 } })\n  @Post()\n  add() {}\n';
  const GUARD = '@UseGuards(ThrottlerBehindProxyGuard)';

  it.each([
    ['of a class without limits', `${GUARD}\n@Controller()\nexport class Orders {\n${LIST}}\n`, 5],
    ['of a class, one of whose routes has one', `${GUARD}\n@Controller()\nexport class Orders {\n${LIST}${ADD}}\n`, 5],
    ['of a route without limits', `@Controller()\nexport class Orders {\n  ${GUARD}\n${LIST}${ADD}}\n`, 7],
  ])('%s is left: limits of the module count by address there', async (_, controller, line) => {
    const folder = new AppFolder(besideAnother(controller));
    const { stdout } = await folder.migrate();
    folder.remove();
    expect(stdout).toContain(
      `Left 1 place for you:\n  src/orders.controller.ts:${line} ThrottlerBehindProxyGuard is one of several guards: limits of ` +
        'the module count by address here',
    );
  });

  it.each([
    [
      'of a class with limits of its own',
      `@Throttle({ default: { limit: 3, ttl: 60_000 } })\n${GUARD}\n@Controller()\nexport class Orders {\n${LIST}}\n`,
    ],
    [
      'of a class whose routes have limits or none',
      `${GUARD}\n@Controller()\nexport class Orders {\n  @SkipThrottle()\n${LIST}${ADD}}\n`,
    ],
    ['of a route with a limit', `@Controller()\nexport class Orders {\n${LIST}  ${GUARD}\n${ADD}}\n`],
  ])('%s leaves nothing', async (_, controller) => {
    const folder = new AppFolder(besideAnother(controller));
    const { stdout } = await folder.migrate();
    const moved = folder.files()['src/orders.controller.ts'];
    folder.remove();
    expect(stdout).not.toContain('Left');
    expect(moved).toContain('key: ThrottlerBehindProxyGuard');
  });
});
