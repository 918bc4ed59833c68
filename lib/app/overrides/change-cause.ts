/** The author of a change and the reason for it; recorded in the history. */
export interface ChangeCause {
  /** The author: 1 to 200 characters on one line. */
  by?: string;
  /** The reason: 1 to 200 characters on one line. */
  reason?: string;
}
