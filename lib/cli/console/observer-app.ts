import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Inject,
  Module,
  Req,
  Res,
  type Type,
} from '@nestjs/common';
import { HttpAdapterHost, NestFactory } from '@nestjs/core';
import { CONSOLE_SETTINGS, type ReadSettings } from '../../console/console-options.js';
import { moduleOf } from '../../console/rate-limit-console.module.js';
import type { PublishedLimitInfo, ReadApp } from '../../console/telemetry/published-limits.js';
import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { SkipRateLimit } from '../../nest/decorators.js';
import { createBesideRegions } from '../app/in-regions.js';
import type { RedisPlace } from '../app/place.js';
import { isWithoutHome, type RegionRole } from '../app/app-redis.js';
import { InputError } from '../command.js';

/** The options of a console outside an app. */
export interface ObserverOptions {
  readonly place: RedisPlace;
  readonly published: ReadApp;
  /** The role of its Redis server for regions. */
  readonly role: RegionRole;
  /** The actor of changes; `undefined` if changes aren't allowed. */
  readonly by: string | undefined;
  readonly isPlain: boolean;
}

const PATH = 'console';
const TOKEN = Symbol('TOKEN');

/** The part of a request that is used, in any framework. */
interface ObserverRequest {
  readonly headers: IncomingHttpHeaders;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly socket?: { readonly localPort?: number };
}

/** Signs a browser in through the link that the program prints. */
@Controller()
@SkipRateLimit()
class SignInController {
  constructor(
    @Inject(TOKEN) private readonly token: string,
    private readonly host: HttpAdapterHost,
  ) {}

  @Get()
  signIn(@Req() request: ObserverRequest, @Res() response: object): void {
    const { httpAdapter } = this.host;
    const given = request.query?.['token'];
    if (typeof given === 'string' && isEqual(given, this.token)) {
      const cookie = `${cookieName(request)}=${this.token}; Path=/; HttpOnly; SameSite=Strict`;
      httpAdapter.setHeader(response, 'set-cookie', cookie);
    }
    httpAdapter.setHeader(response, 'referrer-policy', 'no-referrer');
    httpAdapter.redirect(response, 302, `/${PATH}`);
  }
}

/** Admits browsers that have signed in. */
class TokenGuard implements CanActivate {
  constructor(private readonly token: string) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<ObserverRequest>();
    const name = `${cookieName(request)}=`;
    const cookies = request.headers.cookie?.split(';').map((each) => each.trim()) ?? [];
    return cookies.some((each) => each.startsWith(name) && isEqual(each.slice(name.length), this.token));
  }
}

/** The name contains the port, because browsers send cookies to all ports of a machine. */
function cookieName({ socket }: ObserverRequest): string {
  return `sluice-console-${socket?.localPort ?? 0}`;
}

function isEqual(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Creates an app that consists of the console of another app. */
export async function createObserver(options: ObserverOptions): Promise<{ app: INestApplication; token: string }> {
  const { place, published, role, by, isPlain } = options;
  const isWithout = isWithoutHome(role, place.home);
  const token = randomBytes(24).toString('base64url');
  const guard = new TokenGuard(token);
  const settings: ReadSettings = {
    actor: by === undefined ? undefined : () => by,
    isPlain,
    topKeys: 'always',
    alerts: undefined,
    observed: isWithout ? unchangeable(published) : published,
    ...(isWithout && { changesUnread: cliMessages.consoleWithoutHome() }),
  };
  const routes = {
    path: PATH,
    guards: [guard],
    act: undefined,
    write: by === undefined ? undefined : [guard],
    imports: [],
    isOpen: false,
  };
  const { redis, home, prefix, timeout } = place;
  const moduleOptions = {
    redis,
    timeout,
    ...(prefix !== undefined && { prefix }),
    telemetry: false,
    ipv6Prefix: published.ipv6Prefix,
    ...definitionsOf(published.limits, isWithout),
  };
  const beside = { home, isSilent: false, roleOf: () => Promise.resolve(role) };
  const app = await createBesideRegions(moduleOptions, beside, (limits) => {
    @Module({
      imports: [limits, moduleOf(routes, { provide: CONSOLE_SETTINGS, useValue: settings })],
      controllers: [SignInController],
      providers: [{ provide: TOKEN, useValue: token }],
    })
    class ObserverModule {}
    return create(ObserverModule);
  });
  return { app, token };
}

/** Without the home, the settings kept there can't be changed. */
function unchangeable(published: ReadApp): ReadApp {
  const limits = published.limits.map((each) => ({ ...each, info: { ...each.info, changeable: false } }));
  return { ...published, limits };
}

/** The limits whose counters can be found. A limit is left out if its parent isn't among them. */
function definitionsOf(published: readonly PublishedLimitInfo[], isWithout: boolean) {
  const isFound = ({ definition }: PublishedLimitInfo) =>
    definition !== undefined && !(isWithout && definition['scope'] === 'world');
  const known = new Map(published.filter(isFound).map((each) => [each.info.name, each] as const));
  const isOrphan = ({ definition }: PublishedLimitInfo) => {
    const within = definition?.['within'];
    return typeof within === 'string' && !known.has(within);
  };
  for (let orphans = [...known].filter(([, each]) => isOrphan(each)); orphans.length > 0;) {
    for (const [name] of orphans) known.delete(name);
    orphans = [...known].filter(([, each]) => isOrphan(each));
  }
  const limits: LimitDefinition[] = [];
  const define: Record<string, LimitDefinition> = {};
  for (const [name, { definition, place }] of known) {
    if (place === 'limits') limits.push({ ...definition, name } as unknown as LimitDefinition);
    else define[name] = definition as unknown as LimitDefinition;
  }
  return { limits, define };
}

/** The HTTP platforms of Nest, in variables that no bundler follows, since an app has only one of them. */
const EXPRESS: string = '@nestjs/platform-express';
const FASTIFY: string = '@nestjs/platform-fastify';

async function create(module: Type): Promise<INestApplication> {
  const options = { logger: ['warn', 'error'] as ('warn' | 'error')[], abortOnError: false };
  if ((await loaded(EXPRESS)) !== undefined) return NestFactory.create(module, options);
  const fastify = (await loaded(FASTIFY)) as { FastifyAdapter: new () => never } | undefined;
  if (fastify === undefined) throw new InputError(cliMessages.noPlatform());
  return NestFactory.create(module, new fastify.FastifyAdapter(), options);
}

async function loaded(name: string): Promise<unknown> {
  try {
    return await import(name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
