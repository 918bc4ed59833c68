import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Injectable, type OnApplicationShutdown, type OnModuleInit, type OnApplicationBootstrap } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { ClientSocket } from '../app/transports/connection.js';
import { moduleLogger } from '../engine/errors/logger.js';
import { messages } from '../engine/errors/messages/general.js';
import { StartUpCheck } from '../app/rules/start-up-check.js';
import { trustsAnyone } from '../app/transports/framework-address.js';

/** Warns at start-up if limits count per address, and clients can choose their address. */
@Injectable()
export class TrustedProxies implements OnApplicationBootstrap {
  constructor(
    private readonly host: HttpAdapterHost,
    private readonly startUp: StartUpCheck,
  ) {}

  /** Called by Nest once the app is set up. */
  onApplicationBootstrap(): void {
    const { byAddress } = this.startUp;
    if (byAddress !== undefined && trustsAnyone(this.host.httpAdapter)) {
      moduleLogger.warn(messages.trustsAnyone(byAddress));
    }
  }
}

/** The diagnostics channel on which Node publishes each connection that a server of the process accepts. */
const CONNECTIONS = 'net.server.socket';
/** Over TLS, Node creates separate sockets, which only their server announces. */
const SECURE_CONNECTION = 'secureConnection';

/** The part of an HTTP server that is used. */
interface Server {
  on?(event: string, listener: (socket: ClientSocket) => void): unknown;
  off?(event: string, listener: (socket: ClientSocket) => void): unknown;
}

/**
 * Reads the client's address of each connection when it is accepted, so that Node caches it. The kernel drops the address when the client
 * resets the connection; a request that was sent before still counts for its client.
 */
@Injectable()
export class KeptClientAddresses implements OnModuleInit, OnApplicationShutdown {
  private server: Server | undefined;

  /** A separate function per app, so that unsubscribing does not affect other apps. */
  private readonly keepOfMessage = (message: unknown): void => {
    const { socket } = message as { readonly socket?: ClientSocket };
    if (socket !== undefined) keep(socket);
  };

  constructor(private readonly host: HttpAdapterHost) {}

  /** Called by Nest before the app listens. */
  onModuleInit(): void {
    subscribe(CONNECTIONS, this.keepOfMessage);
    this.server = this.host.httpAdapter?.getHttpServer() as Server | undefined;
    this.server?.on?.(SECURE_CONNECTION, keep);
  }

  /** Called by Nest when the app closes. */
  onApplicationShutdown(): void {
    unsubscribe(CONNECTIONS, this.keepOfMessage);
    this.server?.off?.(SECURE_CONNECTION, keep);
  }
}

function keep(socket: ClientSocket): void {
  void socket.remoteAddress;
}
