import type {
  CanActivate,
  DynamicModule,
  ExecutionContext,
  FactoryProvider,
  ModuleMetadata,
  Type,
} from '@nestjs/common';
import { checkValue, refuseUnknown } from '../engine/options/check-options.js';
import { callableOrClass, words } from '../engine/options/kinds.js';
import type { OptionKind } from '../engine/options/option-row.js';
import { givenOptions, isObject } from '../engine/options/values.js';
import type { ReadApp } from './telemetry/published-limits.js';
import { consoleMessages } from '../engine/errors/messages/console.js';
import { configError, RateLimitConfigError } from '../engine/errors/errors.js';
import { type ConsoleAlerts, readAlerts, type ReadAlerts } from './alerts/alert-options.js';
import { messages } from '../engine/errors/messages/general.js';

export const CONSOLE_SETTINGS = Symbol('CONSOLE_SETTINGS');
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
const REQUIRED: readonly string[] = ['useFactory', 'guards'];

/** Only segments of letters and digits: other characters may have a meaning for a router or a browser. */
const PATH = /^[\w.~-]+(?:\/[\w.~-]+)*$/;
const GUARDS = 'a list of at least one guard: classes, or objects with canActivate';

/** The kind of each option, in the order in which options are checked. */
const KINDS: Readonly<Record<string, OptionKind>> = {
  useFactory: callableOrClass('a function of the settings'),
  inject: { expected: 'a list of tokens', isValid: Array.isArray },
  guards: {
    expected: `${GUARDS}, or 'none' if really everybody may see it`,
    isValid: (value) => value === 'none' || areGuards(value),
  },
  act: {
    expected: `${GUARDS}; leave it out if only those may act on keys who may change anything`,
    isValid: areGuards,
  },
  write: { expected: `${GUARDS}; leave it out for a console that changes nothing`, isValid: areGuards },
  path: {
    expected: "a path such as 'ops/limits': segments of letters, digits and - . _ ~, without parameters",
    isValid: (value) => typeof value === 'string' && isPath(trimmed(value)),
  },
  imports: { expected: 'a list of modules', isValid: Array.isArray },
  actor: callableOrClass('a function of the context that gives a text'),
  identities: words(['hashed', 'plain']),
  topKeys: words(['watched', 'always']),
};

/** Reads the options of `forRoot`. Throws `RateLimitConfigError`. */
export function readOptions(options: unknown, location: string): { routes: ReadRoutes; settings: ReadSettings } {
  const given = checked<RateLimitConsoleOptions>(options, location, [...ROUTES, ...SETTINGS]);
  return { routes: readRoutes(given), settings: readSettings(given, location) };
}

/** Reads the options of `forRootAsync`. Throws `RateLimitConfigError`. */
export function readAsyncOptions(options: unknown, location: string): ReadRoutes {
  return readRoutes(checked<RateLimitConsoleAsyncOptions>(options, location, [...ROUTES, ...ASYNC]));
}

/** Reads the result of the factory of `forRootAsync`. Throws `RateLimitConfigError`. */
export function readGivenSettings(settings: unknown, location: string): ReadSettings {
  const misplaced = ROUTES.find((option) => typeof settings === 'object' && settings !== null && option in settings);
  if (misplaced !== undefined)
    throw configError('SLUICE_MISPLACED_OPTION', consoleMessages.misplaced(location, misplaced));
  return readSettings(checked<RateLimitConsoleSettings>(settings, location, SETTINGS), location);
}

function checked<T extends object>(options: unknown, location: string, known: readonly string[]): T {
  if (!isObject(options)) throw new RateLimitConfigError(messages.notOptions(location, options));
  refuseUnknown(location, options, known);
  const given = givenOptions(options, known);
  for (const [option, kind] of Object.entries(KINDS)) {
    const value = given[option];
    if (!known.includes(option) || (value === undefined && !REQUIRED.includes(option))) continue;
    checkValue(location, option, value, kind);
  }
  return given as T;
}

function readRoutes({ guards, act, write, path = 'rate-limits', imports = [] }: RateLimitConsoleRoutes): ReadRoutes {
  const isOpen = guards === 'none';
  return { path: trimmed(path), guards: isOpen ? [] : guards, act, write, imports, isOpen };
}

function readSettings(settings: RateLimitConsoleSettings, location: string): ReadSettings {
  const { actor, identities, topKeys = 'always', alerts } = settings;
  return { actor, isPlain: identities === 'plain', topKeys, alerts: readAlerts(alerts, location) };
}

function trimmed(path: string): string {
  return path.replace(/^\//, '').replace(/\/$/, '');
}

function isPath(path: string): boolean {
  return PATH.test(path) && !path.split('/').some((segment) => /^\.+$/.test(segment));
}

function areGuards(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isGuard);
}

function isGuard(value: unknown): boolean {
  const guard = typeof value === 'function' ? (value.prototype as unknown) : value;
  return typeof guard === 'object' && guard !== null && typeof (guard as CanActivate).canActivate === 'function';
}
