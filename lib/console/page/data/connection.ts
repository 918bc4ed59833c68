import { Store } from './store.js';

/** How the page and the app are connected. */
export interface Connection {
  readonly state: 'connecting' | 'live' | 'paused' | 'lost' | 'denied';
  /** While it is lost: whether the app answers other requests than that for live numbers. */
  readonly answers?: boolean;
  /** Counts how often it was connected anew: what was loaded before may be old then. */
  readonly epoch: number;
  /** What the app says is wrong, such as a Redis that does not answer. */
  readonly problem?: string;
}

export const connection = new Store<Connection>({ state: 'connecting', epoch: 0 });
