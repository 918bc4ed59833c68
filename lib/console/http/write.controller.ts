import { Get, Injectable, Post, Req, Res } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { LISTS } from '../../config/list-entry.js';
import { LIMIT_MODES } from '../../limits/limit-mode.js';
import type { Changed } from '../api.js';
import { actorOf, type Cause } from '../changes/cause.js';
import type { Ends } from '../changes/rate-changes.js';
import { Fields } from '../fields.js';
import type { CatalogEntry } from '../limit-catalog.js';
import { RateLimitConsole } from '../rate-limit-console.js';
import { type ConsoleRequest, contextOf, Exchange } from './exchange.js';

/** Makes the changes of the page. A request is validated completely before anything is done. */
@Injectable()
export abstract class WriteController {
  constructor(
    private readonly console: RateLimitConsole,
    private readonly host: HttpAdapterHost,
  ) {}

  /** Responds only to users who may change something. */
  @Get('api/write')
  write(@Req() request: ConsoleRequest, @Res() response: object): void {
    this.exchange(request, response).send(204, undefined, {});
  }

  @Post('api/keys/block')
  async block(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'identity', 'id', 'duration');
    const target = await this.console.keys.target(fields);
    const duration = fields.duration('duration');
    fields.check();
    const after = typeof duration === 'number' ? `${duration} ms` : duration;
    const change = this.console.keys.act(target(), 'block', after, await cause(), (limiter, key, options) =>
      limiter.block(key, duration, options),
    );
    exchange.json(await change);
  }

  @Post('api/keys/unblock')
  async unblock(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'identity', 'id');
    const target = await this.console.keys.target(fields);
    fields.check();
    const { keys } = this.console;
    exchange.json(
      await keys.act(target(), 'unblock', undefined, await cause(), (limiter, key, options) =>
        limiter.unblock(key, options),
      ),
    );
  }

  @Post('api/keys/reset')
  async reset(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'identity', 'id');
    const target = await this.console.keys.target(fields);
    fields.check();
    const { keys } = this.console;
    exchange.json(
      await keys.act(target(), 'reset', undefined, await cause(), (limiter, key, options) =>
        limiter.reset(key, options),
      ),
    );
  }

  @Post('api/keys/refund')
  refund(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    return this.charge(request, response, 'refund');
  }

  @Post('api/keys/penalize')
  penalize(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    return this.charge(request, response, 'penalize');
  }

  @Post('api/keys/override')
  async override(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'identity', 'id', 'patch', 'expiresIn');
    this.console.rates.limit(fields);
    const target = await this.console.keys.target(fields);
    const patch = fields.patch();
    const { expiresIn } = endsOf(fields);
    fields.check();
    exchange.json(await this.console.keys.override(target(), patch, expiresIn, await cause()));
  }

  @Post('api/keys/clear-override')
  async clearOverride(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'identity', 'id');
    this.console.rates.limit(fields);
    const target = await this.console.keys.target(fields);
    fields.check();
    exchange.json(await this.console.keys.clearOverride(target(), await cause()));
  }

  @Post('api/lists')
  async list(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'list', 'identity', 'ip', 'limit', 'expiresIn');
    const list = fields.oneOf('list', LISTS);
    const listing = this.console.lists.listing(fields);
    const ends = endsOf(fields);
    fields.check();
    exchange.json(await this.console.lists.put(list, listing(), ends, await cause()));
  }

  @Post('api/lists/remove')
  async unlist(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'id', 'identity', 'ip', 'limit');
    const id = fields.optional('id', (field) => fields.text(field, "the 'id' of an entry"));
    const listing = this.console.lists.listing(fields);
    fields.check();
    const { lists } = this.console;
    exchange.json(await (id === undefined ? lists.end(listing(), await cause()) : lists.endById(id, await cause())));
  }

  @Post('api/rates/set')
  async setRate(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'patch', 'expiresIn');
    const limit = this.console.rates.limit(fields);
    const patch = fields.patch();
    const ends = endsOf(fields);
    fields.check();
    exchange.json(await this.console.rates.set(limit!, patch, ends, await cause()));
  }

  @Post('api/rates/clear')
  clearRate(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    return this.ofLimit(request, response, (limit, cause) => this.console.rates.clear(limit, cause));
  }

  @Post('api/deviations/clear')
  async clearOverrideOf(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'of', 'id');
    const limit = this.console.rates.limit(fields);
    const of = fields.oneOf('of', ['rate', 'mode']);
    const id = fields.text('id', "the 'id' of an override");
    fields.check();
    exchange.json(await this.console.rates.clearOf(limit!, of, id, await cause()));
  }

  @Post('api/modes/set')
  async setMode(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'mode', 'expiresIn');
    const limit = this.console.rates.limit(fields);
    const mode = fields.oneOf('mode', LIMIT_MODES);
    const ends = endsOf(fields);
    fields.check();
    exchange.json(await this.console.rates.setMode(limit!, mode, ends, await cause()));
  }

  @Post('api/modes/clear')
  clearMode(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    return this.ofLimit(request, response, (limit, cause) => this.console.rates.clearMode(limit, cause));
  }

  @Post('api/candidates/set')
  async setCandidate(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'patch');
    const limit = this.console.rates.limit(fields);
    const patch = fields.patch();
    fields.check();
    exchange.json(await this.console.rates.setCandidate(limit!, patch, await cause()));
  }

  @Post('api/candidates/enforce')
  enforceCandidate(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    return this.ofLimit(request, response, (limit, cause) => this.console.rates.enforceCandidate(limit, cause));
  }

  @Post('api/candidates/clear')
  clearCandidate(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    return this.ofLimit(request, response, (limit, cause) => this.console.rates.clearCandidate(limit, cause));
  }

  @Post('api/rollback')
  async rollback(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'version', 'newest');
    const version = fields.whole('version', 0);
    const newest = fields.optional('newest', (field) => fields.whole(field, 0));
    fields.check();
    exchange.json(await this.console.undoing.rollback(version, newest, await cause()));
  }

  @Post('api/undo')
  async undo(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'version');
    const version = fields.whole('version', 1);
    fields.check();
    exchange.json(await this.console.undoing.undo(version, await cause()));
  }

  private async charge(request: ConsoleRequest, response: object, action: 'refund' | 'penalize'): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'identity', 'id', 'units');
    const target = await this.console.keys.target(fields);
    const units = fields.whole('units', 1);
    fields.check();
    const change = this.console.keys.act(target(), action, `${units} units`, await cause(), (limiter, key, options) =>
      // The user relies on a change that is reported as done.
      limiter[action](key, units, { ...options, strict: true }),
    );
    exchange.json(await change);
  }

  private async ofLimit(
    request: ConsoleRequest,
    response: object,
    change: (limit: CatalogEntry, cause: Cause) => Promise<Changed>,
  ): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit');
    const limit = this.console.rates.limit(fields);
    fields.check();
    exchange.json(await change(limit!, await cause()));
  }

  /** Reads a change and its reason. The actor is determined once everything else is valid. */
  private read(request: ConsoleRequest, response: object, ...known: readonly string[]) {
    const exchange = this.exchange(request, response);
    const fields = Fields.ofBody(exchange.request.body, ...known, 'reason');
    const reason = fields.reason();
    const { actor } = this.console.settings;
    const cause = async (): Promise<Cause> =>
      actor === undefined ? { reason } : { by: actorOf(await actor(contextOf(request))), reason };
    return { exchange, fields, cause };
  }

  private exchange(request: ConsoleRequest, response: object): Exchange {
    return new Exchange(this.host.httpAdapter, request, response);
  }
}

function endsOf(fields: Fields): Ends {
  const expiresIn = fields.optional('expiresIn', (field) => fields.duration(field));
  return expiresIn === undefined ? {} : { expiresIn };
}
