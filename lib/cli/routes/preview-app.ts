import { resolve } from 'node:path';
import type { INestApplicationContext, Type } from '@nestjs/common';
import type * as Core from '@nestjs/core';
import type { Module } from '@nestjs/core/injector/module.js';
import { cliMessages, routeMessages } from '../../engine/errors/messages/cli.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import { InputError } from '../command.js';
import { coreOf, exportsOf, moduleOf, providedBy, refuseModule } from '../app/started-app.js';
import type { RouteParts } from '../../nest/routes/route-list.js';
import type { StartUpCheck } from '../../app/rules/start-up-check.js';

type Factory = typeof Core.NestFactory;
type NestModules = Core.ModulesContainer;

/** An app whose routes and limits are known, and of which nothing else runs. */
export interface PreviewedApp extends RouteParts {
  /** A warning about missing parts of the list. */
  readonly note?: string | undefined;
}

/** How long a file that was loaded may take until it calls `NestFactory`, and until it lets its app listen, in milliseconds. */
const LONGEST_PREPARATION_MS = 3000;
const LONGEST_START_MS = 10_000;
const OPTIONS = { preview: true, logger: false, abortOnError: false } as const;

/** Nest's modules of configuration, which start files read, and of paths. */
const ALWAYS = ['ConfigModule', 'ConfigHostModule', 'RouterModule'];
const LIMITS = ['RateLimitModule', 'RateLimitFeatureModule'];

/**
 * Reads the app of a built file: one that calls `NestFactory`, or one that exports a module class. Nest creates the app in its preview
 * mode, so providers aren't created and hooks don't run, except for what limits need. Throws `InputError`.
 */
export async function previewApp(file: string, className: string | undefined): Promise<PreviewedApp> {
  const path = resolve(file);
  const core = await coreOf(path);
  const start = new StartWatch(core);
  try {
    const exported = await loaded(start, path, file);
    const found = exported && moduleOf(exported, className);
    if (className !== undefined && found === undefined) refuseModule(exported ?? {}, file, className);
    if (found !== undefined) {
      const app = await start.ofModule(found).catch((error: unknown) => {
        throw new InputError(cliMessages.unstartable(file, reasonOf(error)));
      });
      return { ...partsOf(app, core, file), note: routeMessages.notAlone(file) };
    }
    const { app, failure } = await start.ofFile(file);
    const note = failure === undefined ? undefined : routeMessages.failedEarly(file, failure);
    return { ...partsOf(app, core, file), note };
  } finally {
    start.end();
  }
}

/** The exports of a file; `undefined` if it makes an app, for which it may wait forever. */
async function loaded(start: StartWatch, path: string, file: string): Promise<Record<string, unknown> | undefined> {
  try {
    const exported = await Promise.race([exportsOf(path, file), start.reported.then(() => undefined)]);
    return start.isUsed ? undefined : exported;
  } catch (error) {
    if (!start.isUsed) throw error;
    start.fail(error);
    return undefined;
  }
}

function partsOf(app: INestApplicationContext, core: typeof Core, file: string): RouteParts {
  const provided = (name: string): unknown => providedBy(app, core.ModulesContainer, name);
  const startUp = limitsOf(app, core);
  if (startUp === undefined) throw new InputError(cliMessages.noLimits());
  try {
    startUp.run();
  } catch (error) {
    throw new InputError(cliMessages.unstartable(file, reasonOf(error)));
  }
  return {
    registry: provided('LimitRegistry'),
    rules: provided('RouteRulesRegistry'),
    classes: provided('HandlerClasses'),
    paths: provided('RoutePaths'),
  } as RouteParts;
}

/** The start-up check of an app's limits; `undefined` if the app has none. */
function limitsOf(app: INestApplicationContext, core: typeof Core): StartUpCheck | undefined {
  const startUp = providedBy(app, core.ModulesContainer, 'StartUpCheck') as StartUpCheck | undefined;
  return typeof startUp?.run === 'function' ? startUp : undefined;
}

interface Started {
  readonly app?: INestApplicationContext;
  readonly failure?: string;
}

/** The methods after which an app has all of its settings. */
const STARTS: readonly unknown[] = ['listen', 'listenAsync', 'init', 'startAllMicroservices'];
const never = <T>() => new Promise<T>(() => undefined);

/** Lets Nest create apps in its preview mode while files run, and keeps them from listening. */
class StartWatch {
  /** True if a file has created an app. */
  isUsed = false;
  private readonly factory: Factory;
  private readonly before: PropertyDescriptorMap;
  private readonly exit = Object.getOwnPropertyDescriptor(process, 'exit')!;
  private latest: INestApplicationContext | undefined;
  private report: (started: Started) => void = () => undefined;
  /** Resolves when the file has made its app, or has failed. */
  readonly reported = new Promise<Started>((resolve) => {
    this.report = resolve;
  });
  readonly fail = (error: unknown): void => this.report({ failure: reasonOf(error) });

  constructor(private readonly core: typeof Core) {
    const { NestFactory: factory } = core;
    this.factory = factory;
    this.before = Object.getOwnPropertyDescriptors(factory);
    const contextOf = this.createContext.bind(this);
    Object.assign(factory, {
      create: this.starting((module, ...rest) => this.createHttp(module, rest)),
      createMicroservice: this.starting(contextOf),
      // It has no prefix, and may never listen. A context without limits only configures another app.
      createApplicationContext: this.starting(async (module) => {
        const app = await contextOf(module);
        if (limitsOf(app, core) === undefined) return app;
        this.report({ app });
        return never();
      }),
    });
    process.exit = (code) => {
      this.report({ failure: `it exits with code ${code ?? 0}` });
      return undefined as never;
    };
    process.on('unhandledRejection', this.fail);
  }

  async ofModule(module: Type): Promise<INestApplicationContext> {
    await this.allow(module);
    return this.createContext(module);
  }

  /** The app that a file has created. Throws `InputError`. */
  async ofFile(file: string): Promise<Started & { readonly app: INestApplicationContext }> {
    const timers = [
      setTimeout(() => this.isUsed || this.report({}), LONGEST_PREPARATION_MS),
      setTimeout(() => this.report({}), LONGEST_START_MS),
    ];
    const { app = this.latest, ...rest } = await this.reported;
    for (const timer of timers) clearTimeout(timer);
    if (app !== undefined) return { app, ...rest };
    if (!this.isUsed && rest.failure === undefined) throw new InputError(routeMessages.noAppMade(file));
    throw new InputError(cliMessages.unstartable(file, rest.failure ?? 'it creates no app in time'));
  }

  end(): void {
    for (const name of ['create', 'createMicroservice', 'createApplicationContext'] as const) {
      Reflect.deleteProperty(this.factory, name);
    }
    Object.defineProperties(this.factory, this.before);
    Object.defineProperty(process, 'exit', this.exit);
    process.off('unhandledRejection', this.fail);
  }

  private starting(create: (module: Type, ...rest: unknown[]) => Promise<INestApplicationContext>) {
    return async (module: Type, ...rest: unknown[]): Promise<INestApplicationContext> => {
      this.isUsed = true;
      try {
        await this.allow(module);
        return this.stopping(await create(module, ...rest));
      } catch (error) {
        this.fail(error);
        throw error;
      }
    };
  }

  /** The same app, which ends here what its file does. */
  private stopping(app: INestApplicationContext): INestApplicationContext {
    this.latest = app;
    const stop = () => {
      this.report({ app });
      return never();
    };
    const modules = app.get(this.core.ModulesContainer);
    const find = (token: never, ...options: never[]): unknown =>
      createdIn(modules, token) ?? app.get<unknown>(token, ...options);
    return new Proxy(app, {
      get(target, property) {
        if (property === 'get') return find;
        return STARTS.includes(property) ? stop : (Reflect.get(target, property) as unknown);
      },
    });
  }

  private createHttp(module: Type, [first, second]: unknown[]): Promise<INestApplicationContext> {
    const create = this.original('create');
    const isAdapter = typeof (first as { getHttpServer?: unknown } | undefined)?.getHttpServer === 'function';
    return isAdapter
      ? create(module, first, { ...(second as object), ...OPTIONS })
      : create(module, { ...(first as object), ...OPTIONS });
  }

  private createContext(module: Type): Promise<INestApplicationContext> {
    return this.original('createApplicationContext')(module, OPTIONS);
  }

  /** Lets Nest create limits in its preview mode, without Redis, and the modules whose providers they need. */
  private async allow(module: Type): Promise<void> {
    const { InitializeOnPreviewAllowlist, ModulesContainer } = this.core;
    const modules = (await this.createContext(module)).get(ModulesContainer);
    for (const { metatype } of needed(modules)) {
      InitializeOnPreviewAllowlist.add(metatype);
      if (metatype.name === 'RateLimitModule') withoutRedis(metatype);
    }
  }

  private original(name: 'create' | 'createApplicationContext') {
    const prototype = Object.getPrototypeOf(this.factory) as Record<typeof name, (...args: unknown[]) => unknown>;
    return (...args: unknown[]) => prototype[name].apply(this.factory, args) as Promise<INestApplicationContext>;
  }
}

/** The instance of a provider that was created: other modules may list its class as well. */
function createdIn(modules: NestModules, token: unknown): unknown {
  for (const module of modules.values()) {
    const instance: unknown = module.initOnPreview ? module.providers.get(token as never)?.instance : undefined;
    if (instance !== undefined && instance !== null) return instance;
  }
  return undefined;
}

/** The modules of limits, and those that have what they inject. */
function needed(modules: NestModules): Set<Module> {
  const all = [...modules.values()];
  const found = new Set(all.filter(({ metatype: { name } }) => LIMITS.includes(name) || ALWAYS.includes(name)));
  // The loop takes in what is added while it runs.
  for (const module of found) {
    for (const wrapper of module.providers.values()) {
      const { inject, metatype } = wrapper;
      const tokens = inject ?? (typeof metatype === 'function' ? dependenciesOf(metatype) : []);
      for (const each of tokens as readonly unknown[]) {
        const token = tokenOf(each);
        if (token === undefined || module.providers.has(token as never)) continue;
        const host = hostOf(module, token as never);
        if (host !== undefined) found.add(host);
      }
    }
  }
  return found;
}

/** The imported module that exports a provider, found in Nest's order: other modules may list the same class. */
function hostOf(module: Module, token: never, passed = new Set<Module>(), isImported = false): Module | undefined {
  for (const other of module.imports) {
    if (passed.has(other) || (isImported && !module.exports.has(other.metatype))) continue;
    passed.add(other);
    const found = other.exports.has(token) && other.providers.has(token) ? other : hostOf(other, token, passed, true);
    if (found !== undefined) return found;
  }
  return undefined;
}

function dependenciesOf(type: object): unknown[] {
  const own = (Reflect.getMetadata('self:paramtypes', type) ?? []) as readonly { index: number; param: unknown }[];
  const params = [...((Reflect.getMetadata('design:paramtypes', type) ?? []) as unknown[])];
  for (const { index, param } of own) params[index] = param;
  const properties = (Reflect.getMetadata('self:properties_metadata', type) ?? []) as readonly { type: unknown }[];
  return [...params, ...properties.map((property) => property.type)];
}

function tokenOf(dependency: unknown): unknown {
  if (typeof dependency !== 'object' || dependency === null) return dependency;
  const { forwardRef, token } = dependency as { forwardRef?: () => unknown; token?: unknown };
  return forwardRef === undefined ? token : forwardRef();
}

/** Lets the module count in process, and start nothing. */
function withoutRedis(type: Function): void {
  const providers = Reflect.getMetadata('providers', type) as { provide?: symbol }[];
  for (const provider of providers) {
    if (!['RATE_LIMIT_REDIS', 'RATE_LIMIT_HOME'].includes(provider.provide?.description ?? '')) continue;
    Object.assign(provider, { useFactory: () => undefined, inject: [] });
  }
  Object.assign(type.prototype as object, { onModuleInit: () => undefined });
}
