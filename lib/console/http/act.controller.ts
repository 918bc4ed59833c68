import { Get, Injectable, Post, Req, Res } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { LISTS } from '../../app/config/list-entry.js';
import { RateLimitConsole } from '../rate-limit-console.js';
import { ChangeController, endsOf } from './change.controller.js';
import { type ConsoleRequest, contextOf } from './exchange.js';
import { Roles } from './roles.js';
import { plural } from '../../engine/util/figures.js';

/** Acts on single keys and entries of lists. What has no end is left to those who may change anything. */
@Injectable()
export abstract class ActController extends ChangeController {
  constructor(
    console: RateLimitConsole,
    host: HttpAdapterHost,
    private readonly roles: Roles,
  ) {
    super(console, host);
  }

  /** Responds only to users who may act on keys. */
  @Get('api/act')
  act(@Req() request: ConsoleRequest, @Res() response: object): void {
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
    const { keys } = this.console;
    await this.checkEnds(request, expiresIn !== undefined, () => keys.hasEndlessRate(target()));
    exchange.json(await keys.override(target(), patch, expiresIn, await cause()));
  }

  @Post('api/keys/clear-override')
  async clearOverride(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'identity', 'id');
    this.console.rates.limit(fields);
    const target = await this.console.keys.target(fields);
    fields.check();
    const { keys } = this.console;
    await this.checkEnds(request, true, () => keys.hasEndlessRate(target()));
    exchange.json(await keys.clearOverride(target(), await cause()));
  }

  @Post('api/lists')
  async list(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'list', 'identity', 'ip', 'limit', 'expiresIn');
    const list = fields.oneOf('list', LISTS);
    const listing = this.console.lists.listing(fields);
    const ends = endsOf(fields);
    fields.check();
    const { lists } = this.console;
    await this.checkEnds(request, ends.expiresIn !== undefined, () => lists.isEndless(listing()));
    exchange.json(await lists.put(list, listing(), ends, await cause()));
  }

  @Post('api/lists/remove')
  async unlist(@Req() request: ConsoleRequest, @Res() response: object): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'id', 'identity', 'ip', 'limit');
    const id = fields.optional('id', (field) => fields.text(field, "the 'id' of an entry"));
    const listing = this.console.lists.listing(fields);
    fields.check();
    const { lists } = this.console;
    await this.checkEnds(request, true, () => lists.isEndless(id ?? listing()));
    exchange.json(await (id === undefined ? lists.end(listing(), await cause()) : lists.endById(id, await cause())));
  }

  private async charge(request: ConsoleRequest, response: object, action: 'refund' | 'penalize'): Promise<void> {
    const { exchange, fields, cause } = this.read(request, response, 'limit', 'identity', 'id', 'units');
    const target = await this.console.keys.target(fields);
    const units = fields.whole('units', 1);
    fields.check();
    const change = this.console.keys.act(
      target(),
      action,
      plural(units, 'unit'),
      await cause(),
      (limiter, key, options) =>
        // The user relies on a change that is reported as done.
        limiter[action](key, units, { ...options, strict: true }),
    );
    exchange.json(await change);
  }

  /** Rejects if somebody who may only act does, replaces or ends something that has no end. */
  private async checkEnds(request: ConsoleRequest, hasEnd: boolean, replaces: () => Promise<boolean>): Promise<void> {
    if (this.roles.areGiven && (!hasEnd || (await replaces()))) {
      await this.roles.check('change', contextOf(request));
    }
  }
}
