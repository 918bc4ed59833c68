/** What is needed of the options of a job. */
export interface LimitedJobOptions {
  /** Its priority when it was added. */
  readonly priority?: number | undefined;
  /** How long it was to wait before it could be processed, in milliseconds. */
  readonly delay?: number | undefined;
}

/** What is needed of a job of BullMQ: its `Job` has it. */
export interface LimitedJob {
  /** Its id in the queue. */
  id?: string | undefined;
  /** The name of its queue, with the prefix. */
  readonly queueQualifiedName: string;
  /** When it was added. */
  timestamp: number;
  /** How many attempts have ended. */
  attemptsMade: number;
  /** How often it was taken from a worker that did not answer any more. */
  stalledCounter?: number | undefined;
  /** The options with which it was added. */
  readonly opts: LimitedJobOptions;
  /** Its priority now: jobs without one, or with 0, come first. */
  priority?: number | undefined;
  /** Changes that. */
  changePriority?(options: { priority?: number }): Promise<void>;
  /** Moves it to the delayed ones. */
  moveToDelayed(timestamp: number, token?: string): Promise<void>;
}

/** A job whose data has no type. */
export interface AnyJob extends LimitedJob {
  /** Its name. */
  readonly name: string;
  /** Its data. */
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly data: any;
}

/** What is needed of BullMQ's `QueueEvents`. */
export interface JobEvents {
  /** The name of the queue, with the prefix. */
  readonly qualifiedName: string;
  /** Listens to what happens to jobs. */
  on(event: 'removed' | 'failed', listener: (event: { jobId: string }) => void): unknown;
}

/** What processes jobs: the function that a `Worker` of BullMQ is made with. */
export type JobProcessor<J, R> = (job: J, token?: string, signal?: AbortSignal) => Promise<R>;

/** What can be done with the units of jobs that wait. */
export interface JobUnits<J> {
  /**
   * Gives back what a job has reserved, unless its time has come: for jobs that are about to be removed. Rejects with
   * `RateLimitArgumentError`, or `RateLimitStoreError`.
   */
  giveBack(job: J): Promise<void>;
  /**
   * Gives back what jobs have reserved that are removed, or fail without having been processed. It knows those that this process has
   * delayed, the last 10,000 of them. Throws `RateLimitArgumentError`.
   *
   * @param events BullMQ's `QueueEvents` of the queue
   */
  follow(events: JobEvents): void;
}

/** A function that processes jobs when their limits let them. */
export interface LimitedProcessor<J, R> extends JobUnits<J> {
  /** Processes a job, or delays it. */
  (job: J, token?: string, signal?: AbortSignal): Promise<R>;
}
