import type { INestApplicationContext, WebSocketAdapter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { missingModule } from '../../nest/copies.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { Answers } from '../../nest/request/answers.js';
import { DeniedAddresses } from '../../nest/request/denied-addresses.js';
import { RequestCheck } from '../../nest/request/request-check.js';
import { RequestLimiter } from '../../nest/request/request-limiter.js';
import { LimitRegistry } from '../../app/rules/limit-registry.js';
import type { Store } from '../../storage/stores/store.js';
import { WaitQueues } from '../../app/waiting/wait-queues.js';
import { addressReader } from './client-address.js';
import { SocketChecks, type SocketServices } from './socket-checks.js';
import { LimitedServers } from './limited-servers.js';
import { readSocketOptions, type SocketLimitOptions } from './socket-options.js';

/** Adapters that have limits. */
const limited = new WeakSet<object>();

/**
 * Limits the WebSockets of an app: handshakes, open connections and frames. It changes the adapter, and returns it:
 * `app.useWebSocketAdapter(rateLimitSockets(app, new IoAdapter(app), { ... }))`. Throws `RateLimitConfigError`.
 *
 * @param app the app, with `RateLimitModule` among its imports
 * @param adapter an `IoAdapter` or a `WsAdapter`, or a class that extends one of them
 * @param options the limits
 */
export function rateLimitSockets<Adapter extends WebSocketAdapter>(
  app: INestApplicationContext,
  adapter: Adapter,
  options: SocketLimitOptions,
): Adapter {
  if (!hasMethod(app, 'get'))
    throw new RateLimitConfigError(socketMessages.noApp(app), { code: 'SLUICE_NOT_INJECTED' });
  if (!hasMethod(adapter, 'create')) throw new RateLimitConfigError(socketMessages.noAdapter(adapter));
  if (limited.has(adapter))
    throw new RateLimitConfigError(socketMessages.limitedTwice(), { code: 'SLUICE_DUPLICATE_MODULE' });
  const settings = readSocketOptions(options);
  const checks = new SocketChecks(settings, servicesOf(app));
  const servers = new LimitedServers(checks, settings.closeAfter, adapter.constructor.name);
  const create = adapter.create.bind(adapter);
  // The server that was made: an adapter of the app may pass options of its own to it.
  adapter.create = (port, serverOptions) => servers.limit(create(port, serverOptions) as object);
  limited.add(adapter);
  return adapter;
}

function servicesOf(app: INestApplicationContext): SocketServices {
  const find = <T>(token: (abstract new (...args: never[]) => T) | symbol): T => {
    try {
      return app.get<T>(token, { strict: false });
    } catch (cause) {
      throw missingModule('rateLimitSockets', socketMessages.noRateLimitModule(), cause);
    }
  };
  return {
    registry: find(LimitRegistry),
    check: find(RequestCheck),
    answers: find(Answers),
    deniedAddresses: find(DeniedAddresses),
    limiter: find(RequestLimiter),
    store: find<Store>(RATE_LIMIT_STORE),
    queues: find(WaitQueues),
    address: addressReader(find(HttpAdapterHost).httpAdapter),
  };
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof value === 'object' && value !== null && typeof (value as Record<string, unknown>)[name] === 'function';
}
