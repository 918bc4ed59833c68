import type {
  CanActivate,
  DynamicModule,
  ExecutionContext,
  FactoryProvider,
  ModuleMetadata,
  Type,
} from '@nestjs/common';
import { oneOf, refuseUnknown } from '../engine/options/check-options.js';
import { givenOptions, orElse } from '../engine/options/values.js';
import type { ReadApp } from './telemetry/published-limits.js';
import { consoleMessages } from '../engine/errors/messages/console.js';
import { RateLimitConfigError } from '../engine/errors/errors.js';
import { type ConsoleAlerts, readAlerts, type ReadAlerts } from './alerts/alert-options.js';
import { messages } from '../engine/errors/messages/general.js';

/** The token of the console's settings. */
export const CONSOLE_SETTINGS = Symbol('CONSOLE_SETTINGS');
/** The token of the console's routes. */
export const CONSOLE_ROUTES = Symbol('CONSOLE_ROUTES');

/** A guard as `@UseGuards` takes it: a class, or an object. */
export type ConsoleGuard = Type<CanActivate> | CanActivate;

/** What the console may do and show. */
export interface RateLimitConsoleSettings {
  /**
   * Returns who makes a change, for the log of changes: a text such as the user's e-mail address, which is cut after 200
   * characters. If it fails or returns nothing, the change is not made.
   * @default the log names nobody
   */
  actor?: ((context: ExecutionContext) => string | Promise<string>) | undefined;
  /**
   * Whether top keys, lists and the log show identities in plain text (`'plain'`) or as hashes (`'hashed'`), which can still be
   * found by typing the identity. All instances should have the same setting.
   * @default 'hashed'
   */
  identities?: 'hashed' | 'plain' | undefined;
  /**
   * Whether the keys that a limit refuses are counted always (`'always'`), so that they are known before somebody looks, or only while
   * somebody views the limit (`'watched'`). They take at most 20,480 counters in an instance, which all limits share by need: up to 256
   * for a limit, and each keeps the first 50 of them for another five minutes. With keys such as `user:1234567` that is about
   * 4 MB, with keys of 256 characters 18 MB. The keys that use most units are counted while somebody views the limit, whatever the setting.
   * @default 'always'
   */
  topKeys?: 'watched' | 'always' | undefined;
  /**
   * Where incidents are reported while nobody looks: limits that refuse a large share, a store that does not answer, and adaptive
   * limits that are full.
   * @default nowhere
   */
  alerts?: ConsoleAlerts | undefined;
}

/** What Nest must know about the console before the app is built. */
export interface RateLimitConsoleRoutes {
  /**
   * The guards of all routes of the console, which decide who may see it; or `'none'`, which logs a warning. Guards with injected
   * dependencies need `imports`.
   */
  guards: readonly ConsoleGuard[] | 'none';
  /**
   * The guards that decide, after `guards`, who may act on single keys, for a while: block, unblock, reset, refund, penalize, give a
   * key a rate of its own until a time, and put entries on lists until a time. What has no end can be neither made, replaced nor
   * ended so. Users that `write` allows may do all of this, too.
   * @default only those that `write` allows
   */
  act?: readonly ConsoleGuard[] | undefined;
  /**
   * The guards that decide, after `guards`, who may change anything.
   * @default nobody may: without `act`, too, the console is read-only
   */
  write?: readonly ConsoleGuard[] | undefined;
  /**
   * The path of the console, without the app's global prefix.
   * @default 'rate-limits'
   */
  path?: string | undefined;
  /**
   * The modules that export the dependencies of the guards.
   * @default none
   */
  imports?: ModuleMetadata['imports'] | undefined;
}

/** Options of `RateLimitConsoleModule.forRoot`. */
export interface RateLimitConsoleOptions extends RateLimitConsoleRoutes, RateLimitConsoleSettings {}

/** Options of `RateLimitConsoleModule.forRootAsync`. Nest reads guards and path before it calls the factory. */
export interface RateLimitConsoleAsyncOptions extends RateLimitConsoleRoutes {
  /** The dependencies of the factory. Their modules belong in `imports`. */
  inject?: FactoryProvider['inject'] | undefined;
  /** Returns the settings when the app starts. */
  useFactory: (...args: never[]) => RateLimitConsoleSettings | Promise<RateLimitConsoleSettings>;
}

/** The routes, read and validated. */
export interface ReadRoutes {
  readonly path: string;
  readonly guards: readonly ConsoleGuard[];
  /** `undefined` if only those may act on keys who may change anything. */
  readonly act: readonly ConsoleGuard[] | undefined;
  /** `undefined` if nobody may change anything. */
  readonly write: readonly ConsoleGuard[] | undefined;
  readonly imports: NonNullable<DynamicModule['imports']>;
  /** Whether everybody may see the console. */
  readonly isOpen: boolean;
}

/** The settings, read and validated. */
export interface ReadSettings {
  readonly actor: RateLimitConsoleSettings['actor'];
  readonly isPlain: boolean;
  readonly topKeys: 'watched' | 'always';
  readonly alerts: ReadAlerts | undefined;
  /** The app's limits, as its instances have published them, for a console that runs beside the app. */
  readonly observed?: ReadApp | undefined;
  /** For such a console: why it does not know what was changed, if so. */
  readonly changesUnread?: string | undefined;
}

const ROUTES = ['guards', 'act', 'write', 'path', 'imports'] as const satisfies (keyof RateLimitConsoleRoutes)[];
const SETTINGS = ['actor', 'identities', 'topKeys', 'alerts'] as const satisfies (keyof RateLimitConsoleSettings)[];
const ASYNC = ['inject', 'useFactory'] as const;

/** Segments of letters and digits only: anything else may mean something to a router or a browser. */
const PATH = /^[\w.~-]+(?:\/[\w.~-]+)*$/;
const PATH_EXPECTED = "a path such as 'ops/limits': segments of letters, digits and - . _ ~, without parameters";
const GUARDS_EXPECTED = 'a list of at least one guard: classes, or objects with canActivate';

/** Reads the options of `forRoot`. Throws `RateLimitConfigError`. */
export function readOptions(options: unknown, location: string): { routes: ReadRoutes; settings: ReadSettings } {
  const given = asOptions(options, location, [...ROUTES, ...SETTINGS]);
  return { routes: readRoutes(given, location), settings: readSettings(given, location) };
}

/** Reads the options of `forRootAsync`. Throws `RateLimitConfigError`. */
export function readAsyncOptions(options: unknown, location: string): ReadRoutes {
  const given = asOptions(options, location, [...ROUTES, ...ASYNC]);
  const { useFactory, inject } = given;
  if (typeof useFactory !== 'function') throw wrong(location, 'useFactory', useFactory, 'a function of the settings');
  if (inject !== undefined && !Array.isArray(inject)) throw wrong(location, 'inject', inject, 'a list of tokens');
  return readRoutes(given, location);
}

/** Reads the result of the factory of `forRootAsync`. Throws `RateLimitConfigError`. */
export function readGivenSettings(settings: unknown, location: string): ReadSettings {
  const misplaced = ROUTES.find((option) => typeof settings === 'object' && settings !== null && option in settings);
  if (misplaced !== undefined)
    throw new RateLimitConfigError(consoleMessages.misplaced(location, misplaced), { code: 'SLUICE_MISPLACED_OPTION' });
  return readSettings(asOptions(settings, location, SETTINGS), location);
}

type Given = Readonly<Record<string, unknown>>;

function asOptions(options: unknown, location: string, known: readonly string[]): Given {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new RateLimitConfigError(messages.notOptions(location, options));
  }
  refuseUnknown(location, options, known);
  return givenOptions(options as Given, known);
}

function readRoutes({ guards, act, write, path: written, imports }: Given, location: string): ReadRoutes {
  const isOpen = guards === 'none';
  const expected = `${GUARDS_EXPECTED}, or 'none' if really everybody may see it`;
  if (!isOpen && !areGuards(guards)) throw wrong(location, 'guards', guards, expected);
  if (act !== undefined && !areGuards(act)) {
    throw wrong(
      location,
      'act',
      act,
      `${GUARDS_EXPECTED}; leave it out if only those may act on keys who may change anything`,
    );
  }
  if (write !== undefined && !areGuards(write)) {
    throw wrong(location, 'write', write, `${GUARDS_EXPECTED}; leave it out for a console that changes nothing`);
  }
  const path = orElse(written, 'rate-limits');
  const trimmed = typeof path === 'string' ? path.replace(/^\//, '').replace(/\/$/, '') : '';
  if (!PATH.test(trimmed) || trimmed.split('/').some((segment) => /^\.+$/.test(segment))) {
    throw wrong(location, 'path', path, PATH_EXPECTED);
  }
  if (imports !== undefined && !Array.isArray(imports)) throw wrong(location, 'imports', imports, 'a list of modules');
  return { path: trimmed, guards: isOpen ? [] : guards, act, write, imports: imports ?? [], isOpen };
}

function readSettings({ actor, identities, topKeys, alerts }: Given, location: string): ReadSettings {
  if (actor !== undefined && typeof actor !== 'function') {
    throw wrong(location, 'actor', actor, 'a function of the context that gives a text');
  }
  return {
    actor: actor as RateLimitConsoleSettings['actor'],
    isPlain: oneOf(location, 'identities', orElse(identities, 'hashed'), ['hashed', 'plain']) === 'plain',
    topKeys: oneOf(location, 'topKeys', orElse(topKeys, 'always') as string, ['watched', 'always']),
    alerts: readAlerts(alerts, location),
  };
}

function areGuards(value: unknown): value is ConsoleGuard[] {
  return Array.isArray(value) && value.length > 0 && value.every(isGuard);
}

function isGuard(value: unknown): value is ConsoleGuard {
  const guard = typeof value === 'function' ? (value.prototype as unknown) : value;
  return typeof guard === 'object' && guard !== null && typeof (guard as CanActivate).canActivate === 'function';
}

function wrong(location: string, option: string, got: unknown, expected: string): RateLimitConfigError {
  if (got === undefined)
    return new RateLimitConfigError(messages.missingOption(location, option, expected), {
      code: 'SLUICE_MISSING_OPTION',
    });
  return new RateLimitConfigError(messages.wrongOption(location, option, got, expected));
}
