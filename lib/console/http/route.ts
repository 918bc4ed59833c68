import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { PROBLEM_TYPE } from '../../app/http/refusal-answer.js';
import { ipIdentity } from '../../app/key-resolvers/ip.js';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import { type Cause, ConsoleProblem } from '../problem.js';
import type { Ends } from '../changes/rate-changes.js';
import type { Fields } from '../fields.js';
import type { RateLimitConsole } from '../rate-limit-console.js';

/** The part of a request that is used, in any framework. */
export interface ConsoleRequest {
  readonly headers: IncomingMessage['headers'];
  readonly url: string;
  readonly originalUrl?: string;
  readonly body?: unknown;
  readonly query?: unknown;
  readonly params?: Readonly<Record<string, string>>;
  readonly ip?: string;
}

/** The headers of every response: do not store, frame or sniff it. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};

/** The contexts of the current requests. A handler can get its own only through pipes, which may be the app's. */
const contexts = new WeakMap<object, ExecutionContext>();

export function keepContext(context: ExecutionContext): void {
  contexts.set(context.switchToHttp().getRequest<object>(), context);
}

/** The context of a request that has passed the console's first guard. */
export function contextOf(request: ConsoleRequest): ExecutionContext {
  return contexts.get(request)!;
}

/** The client of a request, for the console's own limit. */
export function clientOf({ ip }: ConsoleRequest, ipv6Prefix: number): string {
  return ipIdentity(ip, ipv6Prefix) ?? 'unknown';
}

/** A request and its response. Responses bypass all interceptors, because the page expects exactly this form. */
export class Exchange {
  constructor(
    private readonly adapter: AbstractHttpAdapter,
    readonly request: ConsoleRequest,
    private readonly response: object,
  ) {}

  /** The path of the request as it was sent. */
  get path(): string {
    const { url, originalUrl = url } = this.request;
    return originalUrl.split('?', 1)[0]!;
  }

  json(body: unknown, status = 200): void {
    this.send(status, JSON.stringify(body), { 'content-type': 'application/json; charset=utf-8' });
  }

  problem(problem: ConsoleProblem): void {
    const { retryAfter } = problem;
    this.send(problem.status, JSON.stringify(problem.body), {
      'content-type': PROBLEM_TYPE,
      ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
    });
  }

  send(status: number, body: string | undefined, headers: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries({ ...SECURITY_HEADERS, ...headers })) {
      this.adapter.setHeader(this.response, name, value);
    }
    this.adapter.reply(this.response, body, status);
  }

  /** Written directly, since frameworks would serialize the bytes. */
  file(body: Buffer, headers: Readonly<Record<string, string>>): void {
    this.raw()
      .writeHead(200, { ...SECURITY_HEADERS, ...headers, 'content-length': String(body.length) })
      .end(body);
  }

  /** Takes Node's response away from the framework. */
  raw(): ServerResponse {
    const { raw = this.response, hijack } = this.response as { raw?: object; hijack?: () => void };
    if (!('writeHead' in raw)) throw new ConsoleProblem(501, consoleMessages.hidesResponse());
    hijack?.call(this.response);
    return raw as ServerResponse;
  }
}

/** The role that a route requires: view the console, act on single keys temporarily, or change everything. */
export type RouteRole = 'view' | 'act' | 'change';

/** Metadata of handlers that pages of other sites may call: they may link to the page, and the page loads its files. */
export const OPEN = Symbol('OPEN');

/** A request to a route. */
export interface Call {
  readonly console: RateLimitConsole;
  readonly exchange: Exchange;
  /** The client, for the console's own limit. */
  readonly client: string;
  readonly fields: Fields;
  /** The last part of the console's path. */
  readonly folder: string;
  /** Returns the actor and the reason of a change. Called once everything else is valid. */
  cause(): Promise<Cause>;
  /** Rejects if a user who may only act on keys creates, replaces or ends something without an end. */
  checkEnds(hasEnd: boolean, replaces: () => Promise<boolean>): Promise<void>;
}

/** Runs a route whose fields are valid. Resolves to the JSON to send, or to `undefined` if it has already responded. */
export type Answer = () => unknown;

export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly role: RouteRole;
  /** The fields of the query or the body; without them, all fields are ignored. Changes also require a `reason`. */
  readonly fields: readonly string[] | undefined;
  /** True if pages of other sites may link to it. */
  readonly isOpen?: true;
  readonly read: (call: Call) => Answer | Promise<Answer>;
}

/** Returns a function that makes routes of a method and a role. */
export function routesOf(method: Route['method'], role: RouteRole) {
  return (path: string, fields: Route['fields'], read: Route['read']): Route => ({ method, path, role, fields, read });
}

/** The label of a displayed limit. A console outside the app displays more limits than it can check. */
export function shownLimit({ console, fields }: Call): string {
  const label = fields.text('limit', 'the name of a limit');
  if (label !== '' && !console.catalog.has(label)) fields.refuse('limit', consoleMessages.unknownLimit());
  return label;
}

/** Reads the position of a page in a list. */
export function cursorOf(fields: Fields): number {
  const cursor = fields.optional('cursor', (field) =>
    fields.text(field, "the 'next' of a page", (text) => /^\d{1,9}$/.test(text)),
  );
  return Number(cursor ?? 0);
}

/** Reads when a change ends, if it does. */
export function endsOf(fields: Fields): Ends {
  const expiresIn = fields.optional('expiresIn', (field) => fields.duration(field));
  return expiresIn === undefined ? {} : { expiresIn };
}
