import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Logger, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { RateLimitConfigError, RateLimitModule } from '../../lib/index.js';
import { RateLimitConsoleModule } from '../../lib/console/index.js';
import { AdminGuard, ConsoleApp, consoleOf, OpsGuard } from './console-app.js';

type Options = Parameters<typeof RateLimitConsoleModule.forRoot>[0];
type AsyncOptions = Parameters<typeof RateLimitConsoleModule.forRootAsync>[0];

const refused = (options: unknown) => {
  try {
    RateLimitConsoleModule.forRoot(options as Options);
  } catch (error) {
    expect(error).toBeInstanceOf(RateLimitConfigError);
    return (error as Error).message;
  }
  throw new Error('it was taken');
};

/** An app that does not listen. */
async function startUp(imports: unknown[]) {
  const testing = await Test.createTestingModule({ imports: imports as [] }).compile();
  try {
    await testing.init();
    return consoleOf(testing).session;
  } finally {
    await testing.close();
  }
}

describe('the options of the console', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each([
    [undefined, 'got undefined, wants an object of options'],
    [
      {},
      "option 'guards' is missing, wants a list of at least one guard: classes, or objects with canActivate; or 'none'",
    ],
    [{ guards: [] }, "option 'guards' is [], wants a list of at least one guard"],
    [{ guards: 'all' }, "option 'guards' is 'all', wants a list of at least one guard"],
    [{ guards: [class Nothing {}] }, "option 'guards' is [ [class Nothing] ], wants"],
    [{ guards: [OpsGuard], write: [] }, "option 'write' is [], wants a list of at least one guard"],
    [{ guards: [OpsGuard], act: [] }, "option 'act' is [], wants a list of at least one guard"],
    [{ guards: [OpsGuard], act: 'none' }, "option 'act' is 'none', wants"],
    [{ guards: [OpsGuard], write: 'none' }, "option 'write' is 'none', wants"],
    [
      { guards: [OpsGuard], path: ':tenant/limits' },
      "option 'path' is ':tenant/limits', wants a path such as 'ops/limits'",
    ],
    [{ guards: [OpsGuard], path: '' }, "option 'path' is '', wants"],
    [{ guards: [OpsGuard], path: '../engine/limits' }, "option 'path' is '../engine/limits', wants"],
    [{ guards: [OpsGuard], path: ['a', 'b'] }, "option 'path' is [ 'a', 'b' ], wants"],
    [{ guards: [OpsGuard], identities: 'clear' }, "option 'identities' is 'clear', wants one of hashed, plain"],
    [{ guards: [OpsGuard], topKeys: true }, "option 'topKeys' is true, wants one of watched, always"],
    [{ guards: [OpsGuard], actor: 'me' }, "option 'actor' is 'me', wants a function of the context"],
    [{ guards: [OpsGuard], imports: OpsGuard }, "option 'imports' is [class OpsGuard], wants a list of modules"],
    [{ guards: [OpsGuard], alerts: 'slack' }, "option 'alerts' is 'slack', wants an object such as { to: url }"],
    [{ guards: [OpsGuard], alerts: {} }, "alerts: option 'to' is missing, wants the http: or https: URL of a webhook"],
    [{ guards: [OpsGuard], alerts: { to: 'ftp://x/secret' } }, "alerts: option 'to' is '…', wants"],
    [
      { guards: [OpsGuard], alerts: { to: 'https://events.pagerduty.com/v2/enqueue' } },
      "alerts: option 'routingKey' is missing, wants the integration key of PagerDuty",
    ],
    [
      { guards: [OpsGuard], alerts: { to: String, routingKey: 'secret' } },
      "alerts: option 'routingKey' is '…', wants the integration key of PagerDuty, with its format alone",
    ],
    [{ guards: [OpsGuard], alerts: { to: String, format: 'xml' } }, "alerts: option 'format' is 'xml', wants one of"],
    [{ guards: [OpsGuard], alerts: { to: String, kinds: ['slow'] } }, "alerts: option 'kinds' is [ 'slow' ], wants"],
    [{ guards: [OpsGuard], alerts: { to: String, refusedShare: 5 } }, "alerts: option 'refusedShare' is 5, wants"],
    [{ guards: [OpsGuard], alerts: { to: String, link: '/ops' } }, "alerts: option 'link' is '/ops', wants the http"],
    [
      { guards: [OpsGuard], writes: [AdminGuard] },
      "option 'writes' is unknown (did you mean 'write'?), wants only guards, act, write, path",
    ],
  ])('refuses %p', (options, message) => {
    expect(refused(options)).toContain(`RateLimitConsoleModule.forRoot: ${message}`);
  });

  it('takes a path with slashes around it', async () => {
    const app = await ConsoleApp.start({ console: { path: '/limits/' } });
    expect((await app.get('limits')).status).toBe(200);
    await app.close();
  });

  it('says that everybody may see it', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    await startUp([RateLimitModule.forRoot({}), RateLimitConsoleModule.forRoot({ guards: 'none' })]);
    expect(warn.mock.calls.map(([message]) => String(message))).toEqual([
      "the console at 'rate-limits' has guards: 'none', so everybody who reaches this app sees its limits and who uses them",
    ]);
  });

  it('wants a RateLimitModule', async () => {
    await expect(startUp([RateLimitConsoleModule.forRoot({ guards: [OpsGuard] })])).rejects.toThrow(
      'RateLimitConsoleModule: the app has no RateLimitModule, wants RateLimitModule.forRoot() or forRootAsync()',
    );
  });

  it('is there once', async () => {
    const consoles = ['one', 'other'].map((path) => RateLimitConsoleModule.forRoot({ guards: [OpsGuard], path }));
    await expect(startUp([RateLimitModule.forRoot({}), ...consoles])).rejects.toThrow(
      'the console is imported more than once in this app, wants one console for the whole app',
    );
  });

  it('leaves the name of its own limit to none of the app', async () => {
    const define = { 'rate-limit-console': { algo: 'gcra', rate: 5, interval: '1s' } } as const;
    const ofConsole = RateLimitConsoleModule.forRoot({ guards: [OpsGuard] });
    await expect(startUp([RateLimitModule.forRoot({ define }), ofConsole])).rejects.toThrow(
      "the app has a limit of the name 'rate-limit-console', wants another name",
    );
  });

  it('takes its settings from a factory, and guards that inject something', async () => {
    @Injectable()
    class Users {
      readonly names = ['anna'];
    }
    @Module({ providers: [Users], exports: [Users] })
    class UsersModule {}
    @Injectable()
    class UsersGuard extends OpsGuard {
      constructor(readonly users: Users) {
        super();
      }
    }
    const console = RateLimitConsoleModule.forRootAsync({
      guards: [UsersGuard],
      imports: [UsersModule],
      inject: [Users],
      useFactory: async ({ names }: Users) => ({ identities: names.length === 1 ? 'plain' : 'hashed' }),
    });
    expect(await startUp([RateLimitModule.forRoot({}), console])).toMatchObject({
      identities: 'plain',
      writable: false,
    });
  });

  it.each([
    [{ identities: 'clear' }, "option 'identities' is 'clear', wants one of hashed, plain"],
    [
      { guards: [OpsGuard] },
      "option 'guards' came from the factory, wants it beside useFactory, since Nest reads it before",
    ],
    [null, 'got null, wants an object of options'],
  ])('refuses %p of a factory', async (settings, message) => {
    const options = { guards: [OpsGuard], useFactory: () => settings } as unknown as AsyncOptions;
    const console = RateLimitConsoleModule.forRootAsync(options);
    await expect(startUp([RateLimitModule.forRoot({}), console])).rejects.toThrow(
      `RateLimitConsoleModule.forRootAsync: ${message}`,
    );
  });

  it.each([
    [{ guards: [OpsGuard] }, "option 'useFactory' is missing, wants a function of the settings"],
    [{ guards: [OpsGuard], useFactory: () => ({}), inject: 'x' }, "option 'inject' is 'x', wants a list of tokens"],
    [{ useFactory: () => ({}) }, "option 'guards' is missing"],
  ])('refuses %p beside a factory', (options, message) => {
    expect(() => RateLimitConsoleModule.forRootAsync(options as unknown as AsyncOptions)).toThrow(message);
  });
});
