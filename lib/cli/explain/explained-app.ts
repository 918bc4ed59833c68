import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { INestApplicationContext, Type } from '@nestjs/common';
import type { ModulesContainer, NestFactory } from '@nestjs/core';
import { cliMessages } from '../../errors/messages/cli.js';
import type { Explanation } from '../../explain/explanation.js';
import { InputError } from '../command.js';
import { reasonOf } from '../../util/reason-of.js';
import type { CommandQuestion, ModulePlace, RedisPlace } from './settings.js';

/** The part of an app's `LimiterService` that is used; it may come from another copy of the package. */
interface ExplainingService {
  explain(question: CommandQuestion): Promise<Explanation>;
}

/** The part of `@nestjs/core` that is used. */
interface NestCore {
  readonly NestFactory: typeof NestFactory;
  readonly ModulesContainer: typeof ModulesContainer;
}

const OPTIONS = { logger: false, abortOnError: false } as const;

/** An app that was started to be queried. */
export interface ExplainedApp {
  readonly service: ExplainingService;
  close(): Promise<void>;
}

/** Starts an app with nothing but one limit on Redis. */
export async function startOnRedis(place: RedisPlace): Promise<ExplainedApp> {
  const { redis, prefix, timeout, name, definition, everywhere } = place;
  const [core, { RateLimitModule }] = await Promise.all([
    import('@nestjs/core'),
    import('../../nest/rate-limit.module.js'),
  ]);
  const limits = everywhere ? { limits: [{ ...definition, name }] } : { define: { [name]: definition } };
  const common = { redis, timeout, ...(prefix === undefined ? {} : { prefix }), telemetry: false, refusalCache: false };
  return start(core, RateLimitModule.forRoot({ ...common, ...limits }) as never);
}

/** Starts the app of a module, without listening. */
export async function startModule({ file, className }: ModulePlace): Promise<ExplainedApp> {
  const path = resolve(file);
  const [core, exported] = [await coreOf(path), await exportsOf(path, file)];
  const found = moduleOf(exported, className);
  if (found === undefined) {
    const known = Object.keys(exported).filter((name) => isClass(exported[name]));
    throw new InputError(cliMessages.noModule(file, className, known));
  }
  let app: ExplainedApp;
  try {
    app = await start(core, found);
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(cliMessages.unstartable(file, reasonOf(error)));
  }
  return app;
}

async function start({ NestFactory: factory, ModulesContainer: container }: NestCore, module: Type) {
  const app = await factory.createApplicationContext(module, OPTIONS);
  const service = serviceOf(app, container);
  if (service !== undefined) return { service, close: () => app.close() };
  await app.close();
  throw new InputError(cliMessages.noLimits());
}

/** Found by name: an app may have loaded the package as a CommonJS module, while this program is an ES module. */
function serviceOf(app: INestApplicationContext, container: typeof ModulesContainer): ExplainingService | undefined {
  for (const { providers } of app.get(container).values()) {
    for (const { name, instance } of providers.values()) {
      const { explain } = (instance ?? {}) as Partial<ExplainingService>;
      if (name === 'LimiterService' && typeof explain === 'function') return instance as ExplainingService;
    }
  }
  return undefined;
}

/** The app's own Nest, if it is not the one of this package. */
async function coreOf(path: string): Promise<NestCore> {
  try {
    const own = createRequire(path).resolve('@nestjs/core');
    return (await import(pathToFileURL(own).href)) as NestCore;
  } catch {
    return import('@nestjs/core');
  }
}

async function exportsOf(path: string, file: string): Promise<Record<string, unknown>> {
  try {
    const { default: own, ...named } = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
    // The exports of a CommonJS module that static analysis does not find.
    const ofCommonJs = typeof own === 'object' && own !== null ? own : { default: own };
    return { ...ofCommonJs, ...named };
  } catch (error) {
    throw new InputError(cliMessages.unloadable(file, reasonOf(error)));
  }
}

function moduleOf(exported: Record<string, unknown>, className: string | undefined): Type | undefined {
  if (className !== undefined) return isClass(exported[className]) ? exported[className] : undefined;
  const classes = Object.values(exported).filter(isClass);
  const named = exported['AppModule'];
  if (isClass(named)) return named;
  return classes.length === 1 ? classes[0] : undefined;
}

function isClass(value: unknown): value is Type {
  return typeof value === 'function' && typeof value.prototype === 'object';
}
