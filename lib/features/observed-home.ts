import type { Connection } from '../redis/connection.js';

/** The Redis that counts for several regions, for a program that is an instance of none. */
export interface ObservedHome {
  readonly connection: Connection;
  /** Whether closing the store closes the connection. */
  readonly ownsClient: boolean;
  /** The `prefix` of the apps. */
  readonly prefix: string;
  readonly timeoutMs: number;
}
