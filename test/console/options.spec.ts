import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Logger, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { RateLimitConfigError, RateLimitModule } from '../../lib/index.js';
import { RateLimitConsoleModule } from '../../lib/console/index.js';
import { AdminGuard, ConsoleApp, consoleOf, OpsGuard } from './console-app.js';
import { atPlace } from '../support/limits/at-place.js';

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
    [undefined, 'expected an object of options, received undefined'],
    [
      {},
      "missing, expected a list of at least one guard: classes, or objects with canActivate, or 'none' if really everybody may see it",
    ],
    [{ guards: [] }, /guards: expected a list of at least one guard.+, received \[\]/],
    [{ guards: 'all' }, /guards: expected a list of at least one guard.+, received 'all'/],
    [{ guards: [class Nothing {}] }, /guards: expected .+, received \[ \[class Nothing\] \]/],
    [{ guards: [OpsGuard], write: [] }, /write: expected a list of at least one guard.+, received \[\]/],
    [{ guards: [OpsGuard], act: [] }, /act: expected a list of at least one guard.+, received \[\]/],
    [{ guards: [OpsGuard], act: 'none' }, /act: expected .+, received 'none'/],
    [{ guards: [OpsGuard], write: 'none' }, /write: expected .+, received 'none'/],
    [
      { guards: [OpsGuard], path: ':tenant/limits' },
      /path: expected a path such as 'ops\/limits'.+, received ':tenant\/limits'/,
    ],
    [{ guards: [OpsGuard], path: '' }, /path: expected .+, received ''/],
    [{ guards: [OpsGuard], path: '../engine/limits' }, /path: expected .+, received '\.\.\/engine\/limits'/],
    [{ guards: [OpsGuard], path: ['a', 'b'] }, /path: expected .+, received \[ 'a', 'b' \]/],
    [{ guards: [OpsGuard], identities: 'clear' }, "identities: expected one of hashed, plain, received 'clear'"],
    [{ guards: [OpsGuard], topKeys: true }, 'topKeys: expected one of watched, always, received true'],
    [{ guards: [OpsGuard], actor: 'me' }, "actor: expected a function of the context that gives a text, received 'me'"],
    [{ guards: [OpsGuard], imports: OpsGuard }, 'imports: expected a list of modules, received [class OpsGuard]'],
    [{ guards: [OpsGuard], alerts: 'slack' }, "alerts: expected an object such as { to: url }, received 'slack'"],
    [{ guards: [OpsGuard], alerts: {} }, 'alerts.to: missing, expected the http: or https: URL of a webhook'],
    [{ guards: [OpsGuard], alerts: { to: 'ftp://x/secret' } }, /alerts\.to: expected .+, received '…'/],
    [
      { guards: [OpsGuard], alerts: { to: 'https://events.pagerduty.com/v2/enqueue' } },
      'alerts.routingKey: missing, expected the integration key of PagerDuty',
    ],
    [
      { guards: [OpsGuard], alerts: { to: String, routingKey: 'secret' } },
      "alerts.routingKey: expected the integration key of PagerDuty, with its format alone, received '…'",
    ],
    [
      { guards: [OpsGuard], alerts: { to: String, format: 'xml' } },
      "alerts.format: expected one of json, slack, pagerduty, received 'xml'",
    ],
    [
      { guards: [OpsGuard], alerts: { to: String, kinds: ['slow'] } },
      /alerts\.kinds: expected .+, received \[ 'slow' \]/,
    ],
    [
      { guards: [OpsGuard], alerts: { to: String, refusedShare: 5 } },
      'alerts.refusedShare: expected a number from 0.05 to 1, received 5',
    ],
    [
      { guards: [OpsGuard], alerts: { to: String, link: '/ops' } },
      "alerts.link: expected the http: or https: URL of the console, received '/ops'",
    ],
    [{ guards: [OpsGuard], writes: [AdminGuard] }, "unknown option 'writes'. Did you mean 'write'?"],
  ])('refuses %p', (options, message) => {
    expect(refused(options)).toMatch(/^RateLimitConsoleModule\.forRoot(: |\.)/);
    expect(refused(options)).toMatch(message);
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
      "the console at 'rate-limits' has guards: 'none', so everybody who can reach this app sees its limits and who uses them",
    ]);
  });

  it('wants a RateLimitModule', async () => {
    await expect(startUp([RateLimitConsoleModule.forRoot({ guards: [OpsGuard] })])).rejects.toThrow(
      'RateLimitConsoleModule: the app has no RateLimitModule. Import RateLimitModule.forRoot() or forRootAsync() next to it',
    );
  });

  it('is there once', async () => {
    const consoles = ['one', 'other'].map((path) => RateLimitConsoleModule.forRoot({ guards: [OpsGuard], path }));
    await expect(startUp([RateLimitModule.forRoot({}), ...consoles])).rejects.toThrow(
      'the console is imported more than once in this app. Import it once for the whole app',
    );
  });

  it('leaves the name of its own limit to none of the app', async () => {
    const define = { 'rate-limit-console': { algo: 'gcra', rate: 5, interval: '1s' } } as const;
    const ofConsole = RateLimitConsoleModule.forRoot({ guards: [OpsGuard] });
    await expect(startUp([RateLimitModule.forRoot({ define }), ofConsole])).rejects.toThrow(
      "the app has a limit named 'rate-limit-console', a name that the console needs for the limit of its own routes. Choose another name",
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
    [{ identities: 'clear' }, "identities: expected one of hashed, plain, received 'clear'"],
    [{ guards: [OpsGuard] }, "option 'guards' came from the factory, which is too late. Put it next to useFactory"],
    [null, 'expected an object of options, received null'],
  ])('refuses %p of a factory', async (settings, message) => {
    const options = { guards: [OpsGuard], useFactory: () => settings } as unknown as AsyncOptions;
    const console = RateLimitConsoleModule.forRootAsync(options);
    await expect(startUp([RateLimitModule.forRoot({}), console])).rejects.toThrow(
      atPlace('RateLimitConsoleModule.forRootAsync', message),
    );
  });

  it.each([
    [{ guards: [OpsGuard] }, 'useFactory: missing, expected a function of the settings'],
    [{ guards: [OpsGuard], useFactory: () => ({}), inject: 'x' }, "inject: expected a list of tokens, received 'x'"],
    [{ useFactory: () => ({}) }, 'guards: missing'],
  ])('refuses %p beside a factory', (options, message) => {
    expect(() => RateLimitConsoleModule.forRootAsync(options as unknown as AsyncOptions)).toThrow(message);
  });
});
