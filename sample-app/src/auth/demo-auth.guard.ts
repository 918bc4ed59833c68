import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';

export interface DemoUser {
  readonly id: string;
  readonly plan: string;
}

export interface DemoRequest {
  readonly headers: Readonly<Record<string, string | undefined>>;
  user?: DemoUser;
}

/** FOR THE DEMO ONLY: believes whoever the request says it comes from (`x-user`, `x-plan`). A real guard verifies a token. */
@Injectable()
export class DemoAuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<DemoRequest>();
    const id = request.headers['x-user'];
    if (!id) throw new UnauthorizedException('Say who you are: x-user');
    request.user = { id, plan: request.headers['x-plan'] ?? 'free' };
    return true;
  }
}
