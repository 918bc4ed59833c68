import { Store } from './store.js';

/** The connection between the page and the app. */
export interface Connection {
  readonly state: 'connecting' | 'live' | 'paused' | 'lost' | 'denied';
  /** While it is lost: whether the app still answers other requests. */
  readonly answers?: boolean;
  /** Increases with each reconnect: what was loaded before may be outdated then. */
  readonly epoch: number;
  /** A problem that the app reports, such as that Redis does not answer. */
  readonly problem?: string;
}

export const connection = new Store<Connection>({ state: 'connecting', epoch: 0 });
