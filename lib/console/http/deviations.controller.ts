import { Injectable, Post, Req, Res } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { hashedHeader } from '../../app/key-resolvers/header.js';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import type { DeviationKind } from '../api.js';
import { Fields } from '../fields.js';
import { RateLimitConsole } from '../rate-limit-console.js';
import { clientOf, type ConsoleRequest, Exchange } from './exchange.js';

const KINDS: readonly DeviationKind[] = ['overrides', 'blocks', 'lists', 'leases'];
/** The longest text that is looked for: as long as an identity. */
const LONGEST_FIND = 1024;

/** Serves what deviates from the configuration. What is looked for is in the body: it may be an identity. */
@Injectable()
export abstract class DeviationsController {
  constructor(
    private readonly console: RateLimitConsole,
    private readonly host: HttpAdapterHost,
  ) {}

  @Post('api/deviations')
  async deviations(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const exchange = new Exchange(this.host.httpAdapter, request, response);
    const fields = Fields.ofBody(exchange.request.body, 'kind', 'find', 'limit', 'cursor');
    const kind = fields.oneOf('kind', KINDS);
    const expected = `a text of at most ${LONGEST_FIND} characters`;
    const find = fields.optional('find', (field) =>
      fields.text(field, expected, ({ length }) => length <= LONGEST_FIND),
    );
    const limit = fields.optional('limit', (field) => fields.text(field, 'the name of a limit'));
    if (limit !== undefined && limit !== '' && this.console.catalog.find(limit) === undefined) {
      fields.refuse('limit', consoleMessages.unknownLimit());
    }
    const cursor = fields.optional('cursor', (field) =>
      fields.text(field, "the 'next' of a page", (text) => /^\d{1,9}$/.test(text)),
    );
    fields.check();
    if (kind === 'blocks' || kind === 'leases') {
      await this.console.deviationBudget.take(clientOf(request, this.console.ipv6Prefix));
    }
    const query = { kind, find: hashedHeader(find?.trim() ?? ''), limit, cursor: Number(cursor ?? 0) };
    exchange.json(await this.console.deviations.page(query));
  }
}
