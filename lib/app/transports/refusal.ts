import type { HttpException } from '@nestjs/common';
import type { Decision } from '../../engine/limits/decision.js';
import { asObject } from '../../engine/util/objects.js';
import { RateLimitExceededException } from '../http/rate-limit.exceptions.js';

/** The data of a rejection without an HTTP response: the body that it would have, and the wait. */
export function refusalData(exception: HttpException): object {
  return {
    status: 'error',
    ...bodyOf(exception),
    ...(exception instanceof RateLimitExceededException && waitIn(exception)),
  };
}

/** The body of the HTTP response to a rejection. */
export function bodyOf(exception: HttpException): object {
  const body = exception.getResponse();
  return typeof body === 'object' ? body : { statusCode: exception.getStatus(), message: body };
}

/** The wait as a member of an error, unless it is hidden from clients. */
export function waitIn(exception: RateLimitExceededException): { readonly retryAfterMs?: number | null } {
  if (exception.hidesWait) return {};
  const { retryAfterMs } = exception;
  // JSON has no infinite numbers.
  return { retryAfterMs: Number.isFinite(retryAfterMs) ? Math.ceil(retryAfterMs) : null };
}

/** The JSON-RPC code of a call that exceeds a limit. */
const LIMITED = -32_029;
/** The JSON-RPC code of other rejections. JSON-RPC reserves it for servers, without a fixed meaning. */
const REFUSED = -32_000;

/** The context of a message that is an MCP call: `McpContext` of `@rekog/mcp-nest`. */
interface McpMessageContext {
  getSession(): { readonly sessionId?: unknown } | undefined;
  getRawRequest(): unknown;
}

class JsonRpcError extends Error {
  override readonly name = 'JsonRpcError';

  constructor(
    readonly code: number,
    message: string,
    readonly data: object,
  ) {
    super(message);
  }
}

/** Returns the context of a message if it is an MCP call. */
export function asMcpContext(value: unknown): McpMessageContext | undefined {
  const context = asObject<Partial<McpMessageContext>>(value);
  const isMcp = typeof context?.getSession === 'function' && typeof context.getRawRequest === 'function';
  return isMcp ? (context as McpMessageContext) : undefined;
}

/** The error that an MCP client receives instead of an exception. Its `data` contains the wait. */
export async function mcpRefusal(exception: HttpException): Promise<Error> {
  const isLimited = exception instanceof RateLimitExceededException;
  const limit = isLimited ? longestOf(exception) : undefined;
  const data = { ...refusalData(exception), ...(limit !== undefined && { limit }) };
  const code = isLimited ? LIMITED : REFUSED;
  return Object.assign(await protocolError(code, exception.message, data), { cause: exception });
}

/** The limit with the longest wait, among those that aren't hidden. */
function longestOf({ result, limits }: RateLimitExceededException): string | undefined {
  let longest: Decision | undefined;
  for (const decision of result.decisions) {
    if (decision.allowed || !limits.includes(decision.limit)) continue;
    if (longest === undefined || decision.retryAfterMs > longest.retryAfterMs) longest = decision;
  }
  return longest?.limit;
}

/** The SDK sends other errors of tools as results, which clients cannot tell from the results of calls that ran. */
async function protocolError(code: number, message: string, data: object): Promise<Error> {
  try {
    const { ProtocolError } = await import('@modelcontextprotocol/server');
    return new ProtocolError(code, message, data);
  } catch {
    // Servers with another SDK don't need its error class.
    return new JsonRpcError(code, message, data);
  }
}
