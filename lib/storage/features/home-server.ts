import type { Connection } from '../redis/connection.js';

/** The Redis that counts for several regions, and how it is asked. */
export interface HomeServer {
  readonly connection: Connection;
  /** Whether closing the store closes the connection. */
  readonly ownsClient: boolean;
  /** The `prefix` of the apps. */
  readonly prefix: string;
  readonly timeoutMs: number;
}
