import type { ExecutionContext, HttpException } from '@nestjs/common';
import { mcpRefusal } from '../../app/transports/refusal.js';
import type { RequestLike, RequestParts, RequestReader } from '../../app/transports/request-reader.js';
import { asObject } from '../../engine/util/objects.js';
import { asCallExtra, type CallExtra } from './call-extra.js';

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
    .find(hasHeaders);
  if (request === undefined && requestInfo === undefined) return undefined;
  const { ip = request?.socket?.remoteAddress, headers = requestInfo?.headers, socket } = request ?? {};
  const user = request?.user ?? authInfo?.extra?.user ?? authInfo?.clientId;
  return { request: { ip, headers, user, socket } };
}

function hasHeaders(request: RequestLike | undefined): boolean {
  return request?.headers !== undefined;
}
