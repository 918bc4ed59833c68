import type { PolicyReading } from './read-policy.js';

/** Where a policy comes from. */
export interface PolicySource {
  /** For messages. */
  readonly name: string;
  /** The time between two looks, unless the options say otherwise, in milliseconds. */
  readonly everyMs: number;
  /** Reads what there is now. */
  read(): Promise<PolicyReading>;
  /**
   * Looks whether there is something else than what was read last: `undefined` if not, `'changing'` if it has to be looked at
   * again soon.
   */
  look(): Promise<PolicyReading | 'changing' | undefined>;
  /** Ends a reading that is under way. */
  close(): void;
}
