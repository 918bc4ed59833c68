import type { Connection } from '../redis/connection.js';

/** The Redis server that counts for several regions. */
export interface HomeServer {
  readonly connection: Connection;
  /** True if closing the store closes the connection. */
  readonly ownsClient: boolean;
  /** The `prefix` of the apps. */
  readonly prefix: string;
  readonly timeoutMs: number;
}
