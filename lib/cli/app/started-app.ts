import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { INestApplicationContext, Type } from '@nestjs/common';
import type * as Core from '@nestjs/core';
import { reasonOf, withoutSecrets } from '../../engine/errors/reasons.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { redisMessages } from '../../engine/errors/messages/redis.js';
import { connect } from '../../storage/redis/client.js';
import type { Connection } from '../../storage/redis/connection.js';
import { addressesOf, connectionReason, lastErrorOf } from '../../storage/redis/errors.js';
import { ConsoleRedis } from '../../console/telemetry/console-redis.js';
import { InputError } from '../command.js';
import type { DeclaredLimits } from '../../app/rules/declared-limits.js';
import type { LimitRegistry, NamedLimit } from '../../app/rules/limit-registry.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import type { BesideRegions } from './in-regions.js';
import type { ModulePlace, Place, RedisPlace } from './place.js';
import { readRole, type RegionRole } from './app-redis.js';
import type { RateLimitSettings } from '../../app/config/settings.js';

/** Throws `InputError` if the app counts in process, where no change would outlive the command. */
export function redisOf(app: StartedApp): ConsoleRedis {
  return redisAt(app, app.provided<Connection>('RATE_LIMIT_REDIS'));
}

/** The Redis server with the changes of rates, modes and lists: with regions, their home. */
export function changesRedisOf(app: StartedApp): ConsoleRedis {
  return redisAt(app, app.provided<Connection>('RATE_LIMIT_HOME') ?? app.provided<Connection>('RATE_LIMIT_REDIS'));
}

/** The servers of counters, without the app. */
export interface Places {
  readonly own: ConsoleRedis;
  /** The server for limits across regions and for changes, which may be the same. */
  readonly home: ConsoleRedis | undefined;
  readonly role: RegionRole;
}

/** The servers that an app counts on; `undefined` if it was started by its own module. */
export function placesOf(app: StartedApp): Places | undefined {
  const role = app.provided<RegionRole>('REGION_ROLE');
  if (role === undefined) return undefined;
  const own = redisOf(app);
  const given = app.provided<Connection>('RATE_LIMIT_HOME');
  return { own, home: given === undefined ? (role.isHome ? own : undefined) : redisAt(app, given), role };
}

function redisAt(app: StartedApp, connection: Connection | undefined): ConsoleRedis {
  if (connection === undefined) throw new InputError(cliMessages.notOnRedis());
  return redisWith(connection, app.provided<RateLimitSettings>('RATE_LIMIT_SETTINGS')!);
}

function redisWith(connection: Connection, { prefix, timeoutMs }: RateLimitSettings): ConsoleRedis {
  return new ConsoleRedis(connection, prefix, timeoutMs);
}

const OPTIONS = { logger: false, abortOnError: false } as const;

/** An app that was started for one command. Its classes may be from another copy of the package. */
export interface StartedApp {
  readonly service: LimiterService;
  /** A provider of the app's modules, by the name of its class or the text of its symbol. */
  provided<T>(name: string): T | undefined;
  close(): Promise<void>;
}

/** The limit of an app that has this name; `undefined` if it is on a route, or there is none. */
export function limitNamed(app: StartedApp, name: string): NamedLimit | undefined {
  return app.provided<LimitRegistry>('LimitRegistry')?.named.find(({ rule }) => rule.name === name);
}

/** The classes and methods with a limit of this name, such as `OrdersController.create`. */
export function routesOf(app: StartedApp, name: string): string[] {
  const places = app.provided<DeclaredLimits>('DeclaredLimits')?.placesOf?.(name) ?? [];
  return places.filter((place) => place.startsWith(ON_ROUTE)).map((place) => place.slice(ON_ROUTE.length));
}

/** The start of the place of a limit on a class or method. */
const ON_ROUTE = '@RateLimit on ';

/** Starts the app of a place. With `changes`, it notifies all instances of changed counters, since they may remember rejections. */
export function startApp(place: Place, changes: boolean): Promise<StartedApp> {
  return 'file' in place ? startModule(place) : startOnRedis(place, changes);
}

/** Starts an app that has only Redis, and one limit if the place contains one. */
async function startOnRedis(place: RedisPlace, changes: boolean): Promise<StartedApp> {
  const { redis, home, prefix, timeout, limit } = place;
  const [core, { createBesideRegions }] = await Promise.all([import('@nestjs/core'), import('./in-regions.js')]);
  const options = {
    redis,
    timeout,
    ...(prefix !== undefined && { prefix }),
    telemetry: false,
    refusalCache: changes,
    ...(limit && limitsOf(limit)),
  };
  const beside: BesideRegions = {
    home,
    isSilent: true,
    roleOf: (settings, own, toHome) =>
      readRole(
        redisWith(own, settings),
        toHome && { place: redisWith(toHome, settings), address: String(withoutSecrets(home)) },
      ),
  };
  return createBesideRegions(options, beside, (module) => start(core, module as never));
}

/** Throws `InputError` if the Redis server of an app, or the home of its region, can't be reached. */
export async function assertConnected(app: StartedApp): Promise<void> {
  for (const name of ['RATE_LIMIT_REDIS', 'RATE_LIMIT_HOME']) {
    const connection = app.provided<Connection>(name);
    const reason = connection && (await whyNotConnected(connection));
    if (reason !== undefined) throw new InputError(redisMessages.unreachable(addressesOf(connection!), reason));
  }
}

/** The reason why a connection can't be used; `undefined` if it can. */
export async function whyNotConnected(connection: Connection): Promise<string | undefined> {
  if (connection.status === 'ready') return undefined;
  const known = lastErrorOf(connection);
  return known ?? connect(connection).then(() => undefined, connectionReason);
}

function limitsOf({ name, definition, everywhere }: NonNullable<RedisPlace['limit']>) {
  return everywhere ? { limits: [{ ...definition, name }] } : { define: { [name]: definition } };
}

/** Starts the app of a module, without listening on a port. */
async function startModule({ file, className }: ModulePlace): Promise<StartedApp> {
  const path = resolve(file);
  const [core, exported] = [await coreOf(path), await exportsOf(path, file)];
  const found = moduleOf(exported, className) ?? refuseModule(exported, file, className);
  try {
    return await start(core, found);
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(cliMessages.unstartable(file, reasonOf(error)));
  }
}

async function start({ NestFactory, ModulesContainer }: typeof Core, module: Type): Promise<StartedApp> {
  const app = await NestFactory.createApplicationContext(module, OPTIONS);
  const provided = <T>(name: string) => providedBy(app, ModulesContainer, name) as T | undefined;
  const service = provided<LimiterService>('LimiterService');
  if (typeof service?.explain === 'function') return { service, provided, close: () => app.close() };
  await app.close();
  throw new InputError(cliMessages.noLimits());
}

/** Found by name, because an app may have loaded the package as a CommonJS module, while this program is an ES module. */
export function providedBy(
  app: INestApplicationContext,
  container: typeof Core.ModulesContainer,
  name: string,
): unknown {
  for (const { providers } of app.get(container).values()) {
    for (const [token, { instance }] of providers) {
      const known = typeof token === 'symbol' ? token.description : typeof token === 'function' ? token.name : token;
      if (known === name && instance !== undefined && instance !== null) return instance;
    }
  }
  return undefined;
}

/** The app's own copy of Nest, if it is another one than this package's. */
export async function coreOf(path: string): Promise<typeof Core> {
  try {
    const own = createRequire(path).resolve('@nestjs/core');
    return (await import(pathToFileURL(own).href)) as typeof Core;
  } catch {
    return import('@nestjs/core');
  }
}

export async function exportsOf(path: string, file: string): Promise<Record<string, unknown>> {
  try {
    const { default: own, ...named } = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
    // Static analysis doesn't find the exports of a CommonJS module.
    const ofCommonJs = typeof own === 'object' && own !== null ? own : { default: own };
    return { ...ofCommonJs, ...named };
  } catch (error) {
    throw new InputError(cliMessages.unloadable(file, reasonOf(error)));
  }
}

export function moduleOf(exported: Record<string, unknown>, className: string | undefined): Type | undefined {
  if (className !== undefined) return isClass(exported[className]) ? exported[className] : undefined;
  const classes = Object.values(exported).filter(isClass);
  const named = exported['AppModule'];
  if (isClass(named)) return named;
  return classes.length === 1 ? classes[0] : undefined;
}

/** Throws for a file without the module. */
export function refuseModule(exported: Record<string, unknown>, file: string, className: string | undefined): never {
  const known = Object.keys(exported).filter((name) => isClass(exported[name]));
  throw new InputError(cliMessages.noModule(file, className, known));
}

function isClass(value: unknown): value is Type {
  return typeof value === 'function' && typeof value.prototype === 'object';
}
