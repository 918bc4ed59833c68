/** Who changes something, and why: for the history. */
export interface ChangeCause {
  /** Who changes it: 1 to 200 characters on one line. */
  by?: string;
  /** Why: 1 to 200 characters on one line. */
  reason?: string;
}
