import type { ExecutionContext } from '@nestjs/common';
import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { isPromise } from '../../engine/util/awaitable.js';
import { httpReader } from './http.reader.js';
import type { RequestParts, RequestReader } from './request-reader.js';

/** Reads the request and the response of a call. Throws if the reader returns nothing usable, so that no call goes uncounted. */
export function partsOf(reader: RequestReader, context: ExecutionContext): RequestParts {
  const parts = reader.read(context);
  if (reader === httpReader) return parts;
  // Each call site has its own check, which is much faster than a shared function that sees objects of all shapes.
  if (typeof parts === 'object' && parts !== null && !('then' in parts)) return parts;
  if (isUsable(parts)) return parts;
  throw new RateLimitArgumentError(messages.wrongParts(reader.transport, parts), { code: 'SLUICE_INVALID_RESULT' });
}

/** The address of the client, if the transport knows one. */
export function addressOf({ request }: RequestParts): string | undefined {
  const ip = request?.ip;
  return typeof ip === 'string' && ip !== '' ? ip : undefined;
}

/** The object that identifies a call: it is the same for guard and interceptor, and different for every other call. */
export function callOf(reader: RequestReader, context: ExecutionContext): object {
  const call = reader.call?.(context) ?? context.getArgs();
  if (reader === httpReader) return call;
  if (typeof call === 'object' && call !== null && !('then' in call)) return call;
  if (isUsable(call)) return call;
  throw new RateLimitArgumentError(messages.wrongCall(reader.transport, call), { code: 'SLUICE_INVALID_RESULT' });
}

/** Returns true if a reader returned an object. A promise is invalid, and its rejection must not terminate the process. */
function isUsable(given: object): boolean {
  if (isPromise(given)) given.then(undefined, () => undefined);
  else return typeof given === 'object' && given !== null;
  return false;
}
