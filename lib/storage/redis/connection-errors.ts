import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { REJECTS_LOGIN, withoutSecretsIn } from '../../engine/errors/reasons.js';
import { messages } from '../../engine/errors/messages/general.js';
import { redisMessages } from '../../engine/errors/messages/redis.js';

/** The last error of each connection that is down, such as a refused port or a wrong password. */
const lastErrors = new WeakMap<object, string>();

export function rememberError(client: object, { message }: Error): void {
  // A malformed host may contain a password.
  if (message !== '') lastErrors.set(client, withoutSecretsIn(message));
}

export function forgetError(client: object): void {
  lastErrors.delete(client);
}

/** The last error of a connection that is down. */
export function lastErrorOf(client: object): string | undefined {
  return lastErrors.get(client);
}

/** The error for a command on a connection that isn't ready. */
export function notConnected(client: Unready): RateLimitStoreError {
  const code = REJECTS_LOGIN.test(lastErrors.get(client) ?? '') ? 'SLUICE_REDIS_AUTH' : 'SLUICE_REDIS_UNREACHABLE';
  return new RateLimitStoreError(whyNotReady(client), { code });
}

/** The reason why a connection isn't ready, for messages: its state, and its last error if there was one. */
export function whyNotReady(client: Unready): string {
  const { status, stream } = client;
  const isInHandshake = stream?.secureConnecting === true && stream.connecting === false;
  return messages.storeNotReady(
    status,
    lastErrors.get(client) ?? (isInHandshake ? redisMessages.noHandshake() : undefined),
  );
}

interface Unready {
  readonly status: string;
  /** A TLS socket shows that it is connected and waits for the handshake, which a server without TLS never answers. */
  readonly stream?: { readonly connecting?: boolean; readonly secureConnecting?: boolean };
}
