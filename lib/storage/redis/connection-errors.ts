import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { withoutSecretsIn } from '../../engine/util/without-secrets.js';

/** The last error of each connection that is down, such as a refused port or a wrong password. */
const lastErrors = new WeakMap<object, string>();

export function rememberError(client: object, { message }: Error): void {
  // A host of the wrong form may hold a password.
  if (message !== '') lastErrors.set(client, withoutSecretsIn(message));
}

export function forgetError(client: object): void {
  lastErrors.delete(client);
}

/** The last error of a connection that is down. */
export function lastErrorOf(client: object): string | undefined {
  return lastErrors.get(client);
}

/** The error for a command on a connection that is not ready. */
export function notConnected(client: { readonly status: string }): RateLimitStoreError {
  return new RateLimitStoreError(messages.storeNotReady(client.status, lastErrors.get(client)));
}
