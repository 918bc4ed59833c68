import type { Session } from '../../api.js';

/** The properties of every view. */
export interface ViewProps {
  readonly session: Session;
  /** The limit in the address. */
  readonly limit: string | undefined;
}
