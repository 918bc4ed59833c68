import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { ClientSocket } from '../app/transports/connection.js';

/** The diagnostics channel on which Node publishes each connection that any server of the process accepts. */
const CONNECTIONS = 'net.server.socket';
/** Over TLS, Node makes sockets of its own, which only their server announces. */
const SECURE_CONNECTION = 'secureConnection';

/** The part of an HTTP server that is used. */
interface Server {
  on?(event: string, listener: (socket: ClientSocket) => void): unknown;
  off?(event: string, listener: (socket: ClientSocket) => void): unknown;
}

/**
 * Reads the client's address of each connection when it is accepted. Node caches the address, while the kernel forgets it when
 * the client resets the connection: so a request that was sent before a reset still counts for its client.
 */
@Injectable()
export class KeptClientAddresses implements OnModuleInit, OnApplicationShutdown {
  private server: Server | undefined;

  /** A function of this app's own, so that unsubscribing affects no other app. */
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
