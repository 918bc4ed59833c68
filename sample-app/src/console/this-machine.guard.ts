import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';

interface Connected {
  readonly headers: { readonly host?: string };
  readonly socket: { readonly remoteAddress?: string };
}

const ADDRESSES = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/;
/** By another name a page of somebody else could ask. */
const NAMES = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

/** FOR THE DEMO ONLY: whoever sits at this machine may do everything. A real guard asks who it is. */
@Injectable()
export class ThisMachineGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers, socket } = context.switchToHttp().getRequest<Connected>();
    return ADDRESSES.test(socket.remoteAddress ?? '') && NAMES.test(headers.host ?? '');
  }
}
