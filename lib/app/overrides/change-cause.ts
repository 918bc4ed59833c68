/** The author of a change and the reason for it; recorded in the history. */
export interface ChangeCause {
  /** The author: 1 to 200 characters on one line. */
  by?: string;
  /** The reason: 1 to 200 characters on one line. */
  reason?: string;
}

/** The cause of a change, without the members that are not known. */
export function causeOf({ by, reason }: { by?: string | undefined; reason?: string | undefined }): ChangeCause {
  return { ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) };
}
