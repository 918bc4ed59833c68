import { randomBytes } from 'node:crypto';
import { type ExecutionContext, Get, Inject, Injectable, Post, Res } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { consoleMessages } from '../../errors/console-messages.js';
import type { ReadRoutes } from '../console-options.js';
import { CONSOLE_ROUTES } from '../console-tokens.js';
import { Fields } from '../fields.js';
import { ConsoleProblem } from '../problem.js';
import { RateLimitConsole } from '../rate-limit-console.js';
import { Context } from './context.decorator.js';
import { Exchange, SECURITY_HEADERS } from './exchange.js';
import { assetNamed, pageOf, policyOf } from './page.js';

const RANGES = ['5m', '1h', '1d'] as const;

/** What the page shows. Each handler writes its answer itself, so that no interceptor of the app changes its form. */
@Injectable()
export abstract class ReadController {
  constructor(
    private readonly console: RateLimitConsole,
    private readonly host: HttpAdapterHost,
    @Inject(CONSOLE_ROUTES) private readonly routes: ReadRoutes,
  ) {}

  @Get()
  page(@Context() context: ExecutionContext): void {
    const exchange = this.exchange(context);
    const nonce = randomBytes(16).toString('base64');
    // Links are relative to the folder in which the page stands.
    const base = exchange.path.endsWith('/') ? '' : `${this.routes.path.split('/').at(-1)!}/`;
    exchange.send(200, pageOf(base, nonce), {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policyOf(nonce),
    });
  }

  @Get('assets/:file')
  asset(@Context() context: ExecutionContext): void {
    const exchange = this.exchange(context);
    const { params, headers } = exchange.request;
    const asset = assetNamed(params?.['file'] ?? '');
    if (asset === undefined) throw new ConsoleProblem(404, consoleMessages.noFile());
    const readsBrotli = /(?:^|,)\s*br\s*(?:,|;|$)/.test(headers['accept-encoding'] ?? '');
    exchange.file(readsBrotli ? asset.brotli : asset.plain(), {
      'content-type': asset.type,
      // Its name tells its contents.
      'cache-control': 'private, max-age=31536000, immutable',
      vary: 'accept-encoding',
      ...(readsBrotli && { 'content-encoding': 'br' }),
    });
  }

  @Get('api/session')
  session(@Context() context: ExecutionContext): void {
    this.exchange(context).json(this.console.session);
  }

  @Get('api/overview')
  async overview(@Context() context: ExecutionContext): Promise<void> {
    const exchange = this.exchange(context);
    const fields = Fields.ofQuery(exchange.request.query, 'range');
    const range = fields.optional('range', (field) => fields.oneOf(field, RANGES)) ?? '5m';
    fields.check();
    exchange.json(await this.console.overviews.overview(range));
  }

  /** That it takes the response tells Nest not to end it. */
  @Get('api/live')
  live(@Context() context: ExecutionContext, @Res() _response: object): void {
    const exchange = this.exchange(context);
    const fields = Fields.ofQuery(exchange.request.query, 'limit', 'top');
    const isTop = fields.optional('top', (field) => fields.oneOf(field, ['0', '1'])) === '1';
    const limit = isTop || fields.has('limit') ? this.limit(fields) : undefined;
    fields.check();
    this.console.live.assertRoom();
    this.console.live.add(exchange.raw(), SECURITY_HEADERS, isTop ? limit : undefined);
  }

  @Get('api/top')
  async top(@Context() context: ExecutionContext): Promise<void> {
    const exchange = this.exchange(context);
    const fields = Fields.ofQuery(exchange.request.query, 'limit');
    const limit = this.limit(fields);
    fields.check();
    exchange.json(await this.console.top.of(limit));
  }

  @Post('api/lookup')
  async lookup(@Context() context: ExecutionContext): Promise<void> {
    const exchange = this.exchange(context);
    const fields = Fields.ofBody(exchange.request.body, 'identity');
    const identity = fields.identity();
    fields.check();
    exchange.json(await this.console.lookups.all(identity));
  }

  @Get('api/lists')
  async lists(@Context() context: ExecutionContext): Promise<void> {
    const exchange = this.exchange(context);
    const fields = Fields.ofQuery(exchange.request.query, 'cursor');
    const cursor = fields.optional('cursor', (field) =>
      fields.text(field, "the 'next' of a page", (text) => /^\d{1,9}$/.test(text)),
    );
    fields.check();
    exchange.json(await this.console.lists.page(Number(cursor ?? 0)));
  }

  @Get('api/rates')
  async rates(@Context() context: ExecutionContext): Promise<void> {
    const lastHour = await this.console.overviews.lastHour();
    this.exchange(context).json(await this.console.rates.all(lastHour));
  }

  @Get('api/changes')
  async changes(@Context() context: ExecutionContext): Promise<void> {
    const exchange = this.exchange(context);
    const fields = Fields.ofQuery(exchange.request.query, 'limit');
    const limit = fields.has('limit') ? this.limit(fields) : undefined;
    fields.check();
    exchange.json(await this.console.changes.read(limit));
  }

  private exchange(context: ExecutionContext): Exchange {
    return Exchange.of(context, this.host.httpAdapter);
  }

  /** The label of a limit that has a place in the app. */
  private limit(fields: Fields): string {
    const label = fields.text('limit', 'the name of a limit');
    if (label !== '' && this.console.catalog.find(label) === undefined) {
      fields.refuse('limit', consoleMessages.unknownLimit());
    }
    return label;
  }
}
