import type { ExecutionContext } from '@nestjs/common';
import { argumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { isPromise } from '../../engine/util/awaitable.js';
import { asObject } from '../../engine/util/objects.js';
import type { RequestParts, RequestReader } from './request-reader.js';

/** HTTP with any framework. `ip` comes from the framework's own request, so it respects the proxies that the framework trusts. */
export const httpReader: RequestReader = {
  transport: 'http',

  read(context) {
    const args: readonly unknown[] = context.getArgs();
    return { request: asObject(args[0]), response: asObject(args[1]) };
  },

  call(context) {
    const args: readonly unknown[] = context.getArgs();
    return asObject(args[0]) ?? args;
  },
};

const NOTHING: RequestParts = Object.freeze({});

/** The reader for transports without one. It returns no request and no response. */
export const unreadReader: RequestReader = { transport: '', read: () => NOTHING };

/** Returns true if no reader has read these parts. The call may well have what they lack. */
export function isUnread(parts: RequestParts): boolean {
  return parts === NOTHING;
}

/** Reads the request and the response of a call. Throws if the reader returns nothing usable, so that no call goes uncounted. */
export function partsOf(reader: RequestReader, context: ExecutionContext): RequestParts {
  const parts = reader.read(context);
  if (reader === httpReader) return parts;
  // Each call site has its own check, which is much faster than a shared function that sees objects of all shapes.
  if (typeof parts === 'object' && parts !== null && !('then' in parts)) return parts;
  if (isUsable(parts)) return parts;
  throw argumentError('SLUICE_INVALID_RESULT', messages.wrongParts(reader.transport, parts));
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
  throw argumentError('SLUICE_INVALID_RESULT', messages.wrongCall(reader.transport, call));
}

/** Returns true if a reader returned an object. A promise is invalid, and its rejection must not terminate the process. */
function isUsable(given: object): boolean {
  if (isPromise(given)) given.then(undefined, () => undefined);
  else return typeof given === 'object' && given !== null;
  return false;
}
