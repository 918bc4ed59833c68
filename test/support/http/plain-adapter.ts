import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { pipeline } from 'node:stream';
import { BadRequestException, StreamableFile } from '@nestjs/common';
import type { CorsOptions } from '@nestjs/common/interfaces/external/cors-options.interface.js';
import { AbstractHttpAdapter } from '@nestjs/core';

type Next = (error?: unknown) => unknown;
type Step = (request: PlainRequest, response: PlainResponse, next: Next) => unknown;
type FailedStep = (error: unknown, request: PlainRequest, response: PlainResponse, next: Next) => unknown;

interface Layer {
  readonly method: string | undefined;
  readonly matches: (path: string) => Record<string, string> | undefined;
  readonly step: Step;
}

/** A request that holds Node's own. */
class PlainRequest {
  readonly originalUrl: string;
  readonly headers: IncomingMessage['headers'] | Headers;
  readonly ip: string | undefined;
  readonly query: Record<string, string>;
  params: Record<string, string> = {};
  body: unknown;
  [added: string | symbol]: unknown;

  constructor(
    readonly raw: IncomingMessage,
    { trustProxy = false, hasWebHeaders = false }: PlainOptions,
  ) {
    this.headers = hasWebHeaders ? new Headers(Object.entries(raw.headers as Record<string, string>)) : raw.headers;
    const forwarded = trustProxy ? (raw.headers['x-forwarded-for'] as string | undefined) : undefined;
    this.ip = forwarded?.split(',')[0]?.trim() ?? raw.socket.remoteAddress;
    this.originalUrl = raw.url!;
    this.query = Object.fromEntries(new URL(this.originalUrl, 'http://plain').searchParams);
  }

  get method() {
    return this.raw.method!;
  }

  get url() {
    return this.originalUrl;
  }

  get socket() {
    return this.raw.socket;
  }
}

/** A response that only its adapter can write to. */
class PlainResponse {
  readonly raw: ServerResponse | undefined;

  constructor(
    readonly node: ServerResponse,
    isHidden: boolean,
  ) {
    this.raw = isHidden ? undefined : node;
  }
}

export interface PlainOptions {
  /** Whether requests believe X-Forwarded-For. */
  readonly trustProxy?: boolean;
  /** Whether responses keep Node's own to themselves. */
  readonly hidesResponses?: boolean;
  /** Whether requests have the headers of the Web. */
  readonly hasWebHeaders?: boolean;
}

/**
 * A third HTTP adapter, over Node's own server. It shares no code with those of Nest: requests and responses are its own, and all
 * that they have in common with the others is what Nest asks of an adapter.
 */
export class PlainAdapter extends AbstractHttpAdapter<Server, PlainRequest, PlainResponse> {
  private readonly steps: Layer[] = [];
  private readonly routes: Layer[] = [];
  private failed: FailedStep = (_, __, response) => this.reply(response, undefined, 500);
  private missing: Step = (_, response) => this.reply(response, undefined, 404);

  constructor(private readonly settings: PlainOptions = {}) {
    super();
    for (const method of ['get', 'post', 'put', 'patch', 'delete', 'head', 'options', 'all'] as const) {
      this[method] = (path: unknown, step?: unknown) => {
        this.routes.push({
          method: method === 'all' ? undefined : method.toUpperCase(),
          matches: pattern(path as string),
          step: step as Step,
        });
      };
    }
  }

  override use(...args: unknown[]) {
    this.steps.push({ method: undefined, matches: () => ({}), step: args.at(-1) as Step });
  }

  override initHttpServer(): void {
    this.httpServer = createServer((raw, response) => {
      void this.handle(
        new PlainRequest(raw, this.settings),
        new PlainResponse(response, this.settings.hidesResponses === true),
      );
    });
  }

  override listen(port: string | number, ...rest: unknown[]): Server {
    return this.httpServer.listen(Number(port), ...(rest as [string]));
  }

  override close(): Promise<void> {
    return new Promise((done) => void this.httpServer.close(() => done()));
  }

  override registerParserMiddleware(): void {
    this.use(async (request: PlainRequest, _: PlainResponse, next: Next) => {
      if (request.raw.headers['content-type']?.startsWith('application/json') !== true) return next();
      const chunks: Buffer[] = [];
      for await (const chunk of request.raw) chunks.push(chunk as Buffer);
      try {
        request.body = JSON.parse(Buffer.concat(chunks).toString());
      } catch (error) {
        return next(new BadRequestException((error as Error).message));
      }
      return next();
    });
  }

  override createMiddlewareFactory() {
    return (path: string, step: Function) => {
      this.steps.push({ method: undefined, matches: pattern(path, true), step: step as Step });
    };
  }

  override status({ node }: PlainResponse, statusCode: number) {
    node.statusCode = statusCode;
  }

  override reply({ node }: PlainResponse, body: unknown, statusCode?: number): void {
    if (statusCode !== undefined) node.statusCode = statusCode;
    if (body instanceof StreamableFile) {
      const { type } = body.getHeaders();
      if (type !== undefined && !node.hasHeader('content-type')) node.setHeader('Content-Type', type);
      pipeline(body.getStream(), node, () => undefined);
      return;
    }
    const isObject = typeof body === 'object' && body !== null;
    if (isObject && !node.hasHeader('content-type')) node.setHeader('Content-Type', 'application/json; charset=utf-8');
    node.end(typeof body === 'string' ? body : JSON.stringify(body ?? undefined));
  }

  override end({ node }: PlainResponse, message?: string) {
    node.end(message);
  }

  override redirect({ node }: PlainResponse, statusCode: number, url: string) {
    node.writeHead(statusCode, STATUS_CODES[statusCode], { location: url }).end();
  }

  override isHeadersSent({ node }: PlainResponse) {
    return node.headersSent;
  }

  override getHeader({ node }: PlainResponse, name: string) {
    return node.getHeader(name);
  }

  override setHeader({ node }: PlainResponse, name: string, value: string) {
    node.setHeader(name, value);
  }

  override appendHeader({ node }: PlainResponse, name: string, value: string) {
    node.appendHeader(name, value);
  }

  override getRequestHostname({ raw }: PlainRequest) {
    return raw.headers.host?.split(':')[0];
  }

  override getRequestMethod({ method }: PlainRequest) {
    return method;
  }

  override getRequestUrl({ url }: PlainRequest) {
    return url;
  }

  override setErrorHandler(handler: Function) {
    this.failed = handler as FailedStep;
  }

  override setNotFoundHandler(handler: Function) {
    this.missing = handler as Step;
  }

  override enableCors({ origin = '*', exposedHeaders = [] }: CorsOptions = {}) {
    this.use((request: PlainRequest, response: PlainResponse, next: Next) => {
      const asking = request.raw.headers.origin;
      const allowed = Array.isArray(origin) ? origin.find((each) => each === asking) : origin;
      if (allowed !== undefined) {
        this.setHeader(response, 'Access-Control-Allow-Origin', String(allowed === true ? asking : allowed));
      }
      const exposed = [exposedHeaders].flat().join(',');
      if (exposed !== '') this.setHeader(response, 'Access-Control-Expose-Headers', exposed);
      return next();
    });
  }

  override getType() {
    return 'plain';
  }

  override useStaticAssets(): never {
    throw new Error('PlainAdapter has no static files');
  }

  override setViewEngine(): never {
    throw new Error('PlainAdapter has no views');
  }

  override render(): never {
    throw new Error('PlainAdapter has no views');
  }

  override applyVersionFilter(): never {
    throw new Error('PlainAdapter has no versions');
  }

  private async handle(request: PlainRequest, response: PlainResponse): Promise<void> {
    const path = decodeURIComponent(request.originalUrl.split('?', 1)[0]!);
    const layers = [...this.steps, ...this.routes];
    const go = async (index: number, error?: unknown): Promise<unknown> => {
      try {
        if (error !== undefined) return await this.failed(error, request, response, () => undefined);
        const layer = layers[index];
        if (layer === undefined) return await this.missing(request, response, () => undefined);
        const params = fits(layer, request.method) ? layer.matches(path) : undefined;
        if (params === undefined) return await go(index + 1);
        request.params = params;
        return await layer.step(request, response, (failure) => go(index + 1, failure));
      } catch (failure) {
        if (error === undefined) return go(index, failure);
        response.node.destroy();
        return undefined;
      }
    };
    await go(0);
  }
}

function fits({ method }: Layer, asked: string): boolean {
  return method === undefined || method === asked || (method === 'GET' && asked === 'HEAD');
}

/** Matches paths as Nest writes them: `/users/:id`, `/{*path}`, `/files/*path`. */
function pattern(path: string, isPrefix = false): Layer['matches'] {
  const text = path
    .replaceAll(/\/\{\*(\w+)\}|\/\*(\w+)/g, (_, optional?: string, name?: string) => `(?:/(?<${optional ?? name}>.*))?`)
    .replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')
    .replace(/\/$/, '');
  const form = new RegExp(`^${text}${isPrefix ? '(?:/|$)' : '/?$'}`, 'i');
  return (asked) => {
    const found = form.exec(asked);
    return found === null ? undefined : { ...found.groups };
  };
}
