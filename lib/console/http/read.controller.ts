import { randomBytes } from 'node:crypto';
import { Get, Inject, Injectable, Post, Req, Res } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import { headerOf } from '../../app/transports/header-of.js';
import type { ReadRoutes } from '../console-options.js';
import type { Range } from '../api.js';
import { RANGES } from '../views/overviews.js';
import { CONSOLE_ROUTES } from '../console-tokens.js';
import { Fields } from '../fields.js';
import { ConsoleProblem } from '../problem.js';
import { RateLimitConsole } from '../rate-limit-console.js';
import { clientOf, type ConsoleRequest, Exchange, SECURITY_HEADERS } from './exchange.js';
import { assetNamed, pageOf, policyOf } from './page.js';

const RANGE_NAMES = Object.keys(RANGES) as Range[];

/** Serves what the page shows. Each handler writes its own response, so that no interceptor of the app changes it. */
@Injectable()
export abstract class ReadController {
  constructor(
    private readonly console: RateLimitConsole,
    private readonly host: HttpAdapterHost,
    @Inject(CONSOLE_ROUTES) private readonly routes: ReadRoutes,
  ) {}

  @Get()
  page(@Req() request: ConsoleRequest, @Res() response: object): void {
    const exchange = this.exchange(request, response);
    const nonce = randomBytes(16).toString('base64');
    // Links are relative to the folder of the page.
    const base = exchange.path.endsWith('/') ? '' : `${this.routes.path.split('/').at(-1)!}/`;
    exchange.send(200, pageOf(base, nonce), {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policyOf(nonce),
    });
  }

  @Get('assets/:file')
  asset(@Req() request: ConsoleRequest, @Res() response: object): void {
    const exchange = this.exchange(request, response);
    const { params, headers } = exchange.request;
    const asset = assetNamed(params?.['file'] ?? '');
    if (asset === undefined) throw new ConsoleProblem(404, consoleMessages.noFile());
    const readsBrotli = /(?:^|,)\s*br\s*(?:,|;|$)/.test(headerOf(headers, 'accept-encoding') ?? '');
    exchange.file(readsBrotli ? asset.brotli : asset.plain(), {
      'content-type': asset.type,
      // The name contains a hash of the contents.
      'cache-control': 'private, max-age=31536000, immutable',
      vary: 'accept-encoding',
      ...(readsBrotli && { 'content-encoding': 'br' }),
    });
  }

  @Get('api/session')
  session(@Req() request: ConsoleRequest, @Res() response: object): void {
    this.exchange(request, response).json(this.console.session);
  }

  @Get('api/overview')
  async overview(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofQuery(exchange.request.query, 'range');
    const range = fields.optional('range', (field) => fields.oneOf(field, RANGE_NAMES)) ?? '5m';
    fields.check();
    exchange.json(await this.console.overviews.overview(range));
  }

  @Get('api/incidents')
  async incidents(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    this.exchange(request, response).json(await this.console.incidents.now());
  }

  @Get('api/live')
  live(@Req() request: ConsoleRequest, @Res() response: object): void {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofQuery(exchange.request.query, 'limit', 'top');
    const isTop = fields.optional('top', (field) => fields.oneOf(field, ['0', '1'])) === '1';
    const limit = isTop || fields.has('limit') ? this.shown(fields) : undefined;
    fields.check();
    const from = clientOf(request, this.console.ipv6Prefix);
    this.console.live.makeRoom(from);
    this.console.live.add(exchange.raw(), SECURITY_HEADERS, isTop ? limit : undefined, from);
  }

  @Get('api/top')
  async top(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofQuery(exchange.request.query, 'limit');
    const limit = this.shown(fields);
    fields.check();
    exchange.json(await this.console.top.of(limit));
  }

  @Post('api/lookup')
  async lookup(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofBody(exchange.request.body, 'identity');
    const identity = fields.identity();
    fields.check();
    await this.console.lookupBudget.take(clientOf(request, this.console.ipv6Prefix));
    exchange.json(await this.console.lookups.all(identity));
  }

  @Get('api/lists')
  async lists(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofQuery(exchange.request.query, 'cursor');
    const cursor = fields.optional('cursor', (field) =>
      fields.text(field, "the 'next' of a page", (text) => /^\d{1,9}$/.test(text)),
    );
    fields.check();
    exchange.json(await this.console.lists.page(Number(cursor ?? 0)));
  }

  @Get('api/rates')
  async rates(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofQuery(exchange.request.query, 'limit');
    const limit = fields.has('limit') ? this.limit(fields) : undefined;
    fields.check();
    const lastHour = await this.console.overviews.lastHour();
    exchange.json(await this.console.rates.all(lastHour, limit));
  }

  @Get('api/demand')
  async demand(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofQuery(exchange.request.query, 'limit');
    const limit = this.limit(fields);
    fields.check();
    exchange.json(await this.console.demands.of(this.console.catalog.find(limit)!));
  }

  @Get('api/tree')
  async tree(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofQuery(exchange.request.query, 'limit');
    const limit = this.limit(fields);
    fields.check();
    await this.console.deviationBudget.take(clientOf(request, this.console.ipv6Prefix));
    exchange.json(await this.console.parts.tree(this.console.catalog.find(limit)!));
  }

  @Get('api/tenants')
  async tenants(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofQuery(exchange.request.query, 'limit');
    const limit = this.limit(fields);
    fields.check();
    exchange.json(await this.console.parts.tenants(this.console.catalog.find(limit)!));
  }

  @Get('api/changes')
  async changes(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofQuery(exchange.request.query, 'limit');
    const limit = fields.has('limit') ? this.shown(fields) : undefined;
    fields.check();
    exchange.json(await this.console.changes.read(limit));
  }

  @Get('api/rollback')
  async rollback(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofQuery(exchange.request.query, 'version');
    const version = fields.text('version', 'the number of a change', (text) => /^\d{1,15}$/.test(text));
    fields.check();
    exchange.json(await this.console.undoing.preview(Number(version)));
  }

  private exchange(request: ConsoleRequest, response: object): Exchange {
    return new Exchange(this.host.httpAdapter, request, response);
  }

  /** The label of a limit that is shown: beside the app, more are shown than can be asked. */
  private shown(fields: Fields): string {
    const label = fields.text('limit', 'the name of a limit');
    if (label !== '' && !this.console.catalog.has(label)) fields.refuse('limit', consoleMessages.unknownLimit());
    return label;
  }

  /** The label of a limit that is declared in this process. */
  private limit(fields: Fields): string {
    const label = fields.text('limit', 'the name of a limit');
    if (label !== '' && this.console.catalog.find(label) === undefined) {
      fields.refuse('limit', consoleMessages.unknownLimit());
    }
    return label;
  }
}
