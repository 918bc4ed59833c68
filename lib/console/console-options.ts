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

/** A guard as passed to `@UseGuards`: a class or an object. */
export type ConsoleGuard = Type<CanActivate> | CanActivate;

/** Settings of the console. */
export interface RateLimitConsoleSettings {
  /**
   * Returns the actor of a change for the log: a text such as the user's email address, which is cut after 200 characters. If it fails or
   * returns nothing, the change is not made.
   * @default the log contains no actor
   */
  actor?: ((context: ExecutionContext) => string | Promise<string>) | undefined;
  /**
   * How top keys, lists and the log show identities: in plain text (`'plain'`) or as hashes (`'hashed'`). You can still find a hashed
   * identity by typing it. Use the same setting on all instances.
   * @default 'hashed'
   */
  identities?: 'hashed' | 'plain' | undefined;
  /**
   * When rejected keys are counted: `'always'`, so that they are known before you view a limit, or only while somebody views the limit
   * (`'watched'`). They take at most 20,480 counters per instance, which all limits share as needed: up to 256 per limit, whose first 50
   * are kept for another five minutes. With keys such as `user:1234567` that is about 4 MB, with keys of 256 characters 18 MB. The keys
   * that use the most units are only counted while somebody views the limit, in both cases.
   * @default 'always'
   */
  topKeys?: 'watched' | 'always' | undefined;
  /**
   * Where incidents are reported while nobody views the console: limits that reject a large share, a store that doesn't answer, and full
   * adaptive limits.
   * @default incidents are not reported
   */
  alerts?: ConsoleAlerts | undefined;
}

/** Options that Nest must know before the app is built. */
export interface RateLimitConsoleRoutes {
  /**
   * The guards of all routes of the console, which decide who may view it; or `'none'`, which logs a warning. Guards with injected
   * dependencies need `imports`.
   */
  guards: readonly ConsoleGuard[] | 'none';
  /**
   * The guards that decide, after `guards`, who may act on single keys temporarily: block, unblock, reset, refund, penalize, set a rate
   * with an end for a key, and add entries with an end to lists. These users can't create, replace or end anything without an end. Users
   * that `write` allows can also do all of this.
   * @default only users that `write` allows
   */
  act?: readonly ConsoleGuard[] | undefined;
  /**
   * The guards that decide, after `guards`, who may change anything.
   * @default nobody; without `act` as well, the console is read-only
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
  /** The dependencies of the factory. Add their modules to `imports`. */
  inject?: FactoryProvider['inject'] | undefined;
  /** Returns the settings when the app starts. */
  useFactory: (...args: never[]) => RateLimitConsoleSettings | Promise<RateLimitConsoleSettings>;
}

/** The validated routes. */
export interface ReadRoutes {
  readonly path: string;
  readonly guards: readonly ConsoleGuard[];
  /** `undefined` if only users who may change everything may act on keys. */
  readonly act: readonly ConsoleGuard[] | undefined;
  /** `undefined` if nobody may change anything. */
  readonly write: readonly ConsoleGuard[] | undefined;
  readonly imports: NonNullable<DynamicModule['imports']>;
  /** True if anyone may view the console. */
  readonly isOpen: boolean;
}

/** The validated settings. */
export interface ReadSettings {
  readonly actor: RateLimitConsoleSettings['actor'];
  readonly isPlain: boolean;
  readonly topKeys: 'watched' | 'always';
  readonly alerts: ReadAlerts | undefined;
  /** The app's limits as published by its instances, for a console outside the app. */
  readonly observed?: ReadApp | undefined;
  /** For such a console: the reason if it can't read the changes. */
  readonly changesUnread?: string | undefined;
}

const ROUTES = ['guards', 'act', 'write', 'path', 'imports'] as const satisfies (keyof RateLimitConsoleRoutes)[];
const SETTINGS = ['actor', 'identities', 'topKeys', 'alerts'] as const satisfies (keyof RateLimitConsoleSettings)[];
const ASYNC = ['inject', 'useFactory'] as const;

/** Only segments of letters and digits: other characters may have a meaning for a router or a browser. */
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
