/** Reports to a BullMQ worker that the job was delayed. Workers recognise it by name, whichever copy of BullMQ they come from. */
export class JobDelayedError extends Error {
  override readonly name = 'DelayedError';
}

/** Fails a job for good: a BullMQ worker recognises the error by name and does not retry. */
export class UnrecoverableJobError extends Error {
  override readonly name = 'UnrecoverableError';
}
