/** The options of a job that limits use. */
export interface LimitedJobOptions {
  /** Its priority when it was added. */
  readonly priority?: number | undefined;
  /** How long it was delayed before it could be processed, in milliseconds. */
  readonly delay?: number | undefined;
}

/** The part of a BullMQ `Job` that limits use. */
export interface LimitedJob {
  /** Its id in the queue. */
  id?: string | undefined;
  /** The name of its queue, with the prefix. */
  readonly queueQualifiedName: string;
  /** When it was added, in milliseconds since the epoch. */
  timestamp: number;
  /** How many attempts have ended. */
  attemptsMade: number;
  /** The number of times that it was taken from a worker that had stopped responding. */
  stalledCounter?: number | undefined;
  /** The options with which it was added. */
  readonly opts: LimitedJobOptions;
  /** Its current priority. Jobs without one, or with 0, come first. */
  priority?: number | undefined;
  /** Changes its priority. */
  changePriority?(options: { priority?: number }): Promise<void>;
  /** Moves it to the delayed jobs. */
  moveToDelayed(timestamp: number, token?: string): Promise<void>;
}

/** A job whose data is untyped. */
export interface AnyJob extends LimitedJob {
  /** Its name. */
  readonly name: string;
  /** Its data. */
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly data: any;
}

/** The part of BullMQ's `QueueEvents` that limits use. */
export interface JobEvents {
  /** The name of the queue, with the prefix. */
  readonly qualifiedName: string;
  /** Subscribes to an event of jobs. */
  on(event: 'removed' | 'failed', listener: (event: { jobId: string }) => void): unknown;
}

/** A function that processes jobs, as passed to a BullMQ `Worker`. */
export type JobProcessor<J, R> = (job: J, token?: string, signal?: AbortSignal) => Promise<R>;

/** The reserved units of waiting jobs. */
export interface JobUnits<J> {
  /**
   * Returns the reserved units of a job, unless its time has come. Call it for jobs that are about to be removed. Rejects with
   * `RateLimitArgumentError` or `RateLimitStoreError`.
   */
  giveBack(job: J): Promise<void>;
  /**
   * Returns the reserved units of jobs when they are removed, or when they fail without having been processed. It tracks the last 10,000
   * jobs that this process has delayed. Throws `RateLimitArgumentError`.
   *
   * @param events BullMQ's `QueueEvents` of the queue
   */
  follow(events: JobEvents): void;
}

/** A function that processes jobs when their limits have room. */
export interface LimitedProcessor<J, R> extends JobUnits<J> {
  /** Processes a job, or delays it. */
  (job: J, token?: string, signal?: AbortSignal): Promise<R>;
}
