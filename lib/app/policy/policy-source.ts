import type { PolicyReading } from './read-policy.js';

/** The source of a policy. */
export interface PolicySource {
  /** For messages. */
  readonly name: string;
  /** The default time between two checks, in milliseconds. */
  readonly everyMs: number;
  /** Reads the current version. */
  read(): Promise<PolicyReading>;
  /**
   * Checks if the source has changed since the last read: `undefined` if not, `'changing'` if it must be checked again soon.
   */
  look(): Promise<PolicyReading | 'changing' | undefined>;
  /** Aborts the current read. */
  close(): void;
}
