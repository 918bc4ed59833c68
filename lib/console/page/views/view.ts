import type { Session } from '../../api.js';

/** What every view is given. */
export interface ViewProps {
  readonly session: Session;
  /** The limit that the address names. */
  readonly limit: string | undefined;
}
