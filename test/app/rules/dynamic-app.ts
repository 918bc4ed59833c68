import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { type LimitSpec, RateLimit } from '../../../lib/index.js';

export interface Caller {
  readonly headers: Readonly<Record<string, string | undefined>>;
  user?: { id: string; plan: string };
}

export const requestOf = (context: ExecutionContext) => context.switchToHttp().getRequest<Caller>();
export const headerOf = (context: ExecutionContext, name: string) => requestOf(context).headers[name];

/** Stands for an app's own guard of users: `id/plan` in a header. */
@Injectable()
export class CallerGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    const [id, plan] = headerOf(context, 'x-user')?.split('/') ?? [];
    if (id !== undefined) requestOf(context).user = { id, plan: plan! };
    return true;
  }
}

@Controller()
export class OpenController {
  @Get('open')
  open() {}

  @Get('other')
  other() {}
}

@Controller('users')
@UseGuards(CallerGuard)
export class UsersController {
  @Get()
  list() {}
}

export function controllerWith(spec: LimitSpec): Type {
  @Controller('own')
  @RateLimit(spec)
  class LimitedController {
    @Get('one')
    one() {}

    @Get('two')
    two() {}
  }
  return LimitedController;
}

/** The name, the quota and what is left of each limit that a response reports. */
export function reported({ headers }: Response): [string, number, number][] {
  const items = (name: string) => headers.get(name)?.split(', ') ?? [];
  return items('ratelimit-policy').map((policy, index) => [
    /^"([^"]*)"/.exec(policy)![1]!,
    Number(/;q=(\d+)/.exec(policy)![1]),
    Number(/;r=(\d+)/.exec(items('ratelimit')[index]!)![1]),
  ]);
}
