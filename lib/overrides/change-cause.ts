/** Who changes something, and why: for the history. */
export interface ChangeCause {
  /** Who changes it: 1 to 200 characters. */
  by?: string;
  /** Why: 1 to 200 characters. */
  reason?: string;
}
