/** Who makes a change, and why; recorded in the history. */
export interface ChangeCause {
  /** Who makes the change: 1 to 200 characters on one line. */
  by?: string;
  /** Why: 1 to 200 characters on one line. */
  reason?: string;
}
