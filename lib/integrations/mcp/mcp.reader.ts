import type { ExecutionContext, HttpException } from '@nestjs/common';
import { asMcpContext, mcpRefusal } from '../../app/transports/refusal.js';
import type { RequestLike, RequestParts, RequestReader } from '../../app/transports/request-reader.js';
import { asObject } from '../../engine/util/objects.js';

/** The second argument of MCP handlers: the SDK's data about the call, plus whatever frameworks add to it. */
interface CallExtra {
  readonly sessionId?: unknown;
  /** The framework's request, which has the address. */
  readonly request?: unknown;
  readonly rawRequest?: unknown;
  readonly req?: unknown;
  /** The SDK's copy of the request. */
  readonly requestInfo?: { readonly headers?: RequestLike['headers'] };
  readonly authInfo?: { readonly clientId?: unknown; readonly extra?: { readonly user?: unknown } };
  /** Aborts when the call is cancelled. */
  readonly signal?: { readonly addEventListener?: unknown };
}

/**
 * Returns an argument of a handler if the SDK passed it. The message itself comes from the client, which could put any address, user and
 * session there; but it can't send a function.
 */
function asCallExtra(value: unknown): CallExtra | undefined {
  const extra = asObject<CallExtra>(value);
  return typeof asObject<NonNullable<CallExtra['signal']>>(extra?.signal)?.addEventListener === 'function'
    ? extra
    : undefined;
}

/**
 * Reads calls whose `context.getType()` is `'mcp'`, for the option `readers`. Among the arguments of the handler it finds the SDK's data,
 * and in that the framework's HTTP request as `request`, `rawRequest` or `req`.
 */
export class McpReader implements RequestReader {
  readonly transport = 'mcp';

  /** Returns address, headers and user of the request. */
  read(context: ExecutionContext): RequestParts {
    const args: readonly unknown[] = context.getArgs();
    for (const each of args) {
      const parts = partsOf(asCallExtra(each));
      if (parts !== undefined) return parts;
    }
    return {};
  }

  /** Returns a JSON-RPC error whose `data` contains the wait. */
  refuse(exception: HttpException): Promise<Error> {
    return mcpRefusal(exception);
  }
}

function partsOf(extra: CallExtra | undefined): RequestParts | undefined {
  if (extra === undefined) return undefined;
  const { requestInfo, authInfo } = extra;
  const request = [extra.request, extra.rawRequest, extra.req]
    .map((each) => asObject<RequestLike>(each))
    .find((each) => each?.headers !== undefined);
  if (request === undefined && requestInfo === undefined) return undefined;
  const { ip = request?.socket?.remoteAddress, headers = requestInfo?.headers, socket } = request ?? {};
  const user = request?.user ?? authInfo?.extra?.user ?? authInfo?.clientId;
  return { request: { ip, headers, user, socket } };
}

/**
 * Counts each MCP session separately, as the `key` of limits: `session:<id>`. Without sessions (a stateless server, or stdio), it returns
 * nothing, and `onMissingKey` applies. Clients can open any number of sessions, so limit these with another key.
 */
export function bySession(context: ExecutionContext): string | undefined {
  const args: readonly unknown[] = context.getArgs();
  for (const each of args) {
    const id = (asMcpContext(each)?.getSession() ?? asCallExtra(each))?.sessionId;
    if (typeof id === 'string' && id !== '') return `session:${id}`;
  }
  return undefined;
}
