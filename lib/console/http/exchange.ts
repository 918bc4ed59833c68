import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import { ConsoleProblem } from '../problem.js';
import { ipIdentity } from '../../app/key-resolvers/ip.js';
import { PROBLEM_TYPE } from '../../app/http/refusal-answer.js';

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
