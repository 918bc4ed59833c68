/** Says to a worker of BullMQ that the job was delayed. Workers know it by its name, whichever copy of BullMQ they are of. */
export class JobDelayedError extends Error {
  override readonly name = 'DelayedError';
}

/** A job that is not tried again: a worker of BullMQ knows it by its name. */
export class UnrecoverableJobError extends Error {
  override readonly name = 'UnrecoverableError';
}
