import { Get, Injectable, Post, Req, Res } from '@nestjs/common';
import { LIMIT_MODES } from '../../engine/limits/limit-mode.js';
import type { Changed } from '../api.js';
import type { Cause } from '../changes/cause.js';
import type { CatalogEntry } from '../limit-catalog.js';
import { ChangeController, endsOf } from './change.controller.js';
import type { ConsoleRequest } from './exchange.js';

/** Makes the changes of limits, and undoes changes. */
@Injectable()
export abstract class WriteController extends ChangeController {
  /** Responds only to users who may change anything. */
  @Get('api/write')
  write(@Req() request: ConsoleRequest, @Res() response: object): void {
    this.exchange(request, response).send(204, undefined, {});
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
}
