import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { actorOf, type Cause } from '../changes/cause.js';
import type { Ends } from '../changes/rate-changes.js';
import { Fields } from '../fields.js';
import { RateLimitConsole } from '../rate-limit-console.js';
import { type ConsoleRequest, contextOf, Exchange } from './exchange.js';

/** What controllers of changes share: a request is validated completely before anything is done. */
@Injectable()
export abstract class ChangeController {
  constructor(
    protected readonly console: RateLimitConsole,
    private readonly host: HttpAdapterHost,
  ) {}

  /** Reads a change and its reason. The actor is determined once everything else is valid. */
  protected read(request: ConsoleRequest, response: object, ...known: readonly string[]) {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofBody(exchange.request.body, ...known, 'reason');
    const reason = fields.reason();
    const { actor } = this.console.settings;
    const cause = async (): Promise<Cause> =>
      actor === undefined ? { reason } : { by: actorOf(await actor(contextOf(request))), reason };
    return { exchange, fields, cause };
  }

  protected exchange(request: ConsoleRequest, response: object): Exchange {
    return new Exchange(this.host.httpAdapter, request, response);
  }
}

/** Reads when a change ends, if it does. */
export function endsOf(fields: Fields): Ends {
  const expiresIn = fields.optional('expiresIn', (field) => fields.duration(field));
  return expiresIn === undefined ? {} : { expiresIn };
}
