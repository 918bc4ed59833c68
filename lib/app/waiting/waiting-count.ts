import { waitMessages } from '../../engine/errors/messages/calls.js';
import { RateLimitWaitersError } from './waiting-errors.js';

/** The bound for all counters together, as a multiple of the bound for one counter. */
const COUNTERS = 10;

/** Counts the waiting calls of a process. */
export class WaitingCount {
  private all = 0;
  /** The errors of this turn of the event loop, which calls share: creating an error costs more than the rest of a call. */
  private readonly errors = new Map<string, RateLimitWaitersError>();

  constructor(
    /** The maximum number of calls that may wait for one counter. */
    readonly most: number,
  ) {}

  /** True if no more calls may wait for all counters together. */
  get isFull(): boolean {
    return this.all >= this.most * COUNTERS;
  }

  /** The error of a call that exceeds the bound for all counters. */
  refusalOfAll(limit: string): RateLimitWaitersError {
    return this.errorOf(waitMessages.tooManyInAll(limit, this.all, this.most));
  }

  readonly begin = (): void => {
    this.all++;
  };

  readonly end = (): void => {
    this.all--;
  };

  /** The error of a call that exceeds the bound for its counter. */
  refusal(limit: string): RateLimitWaitersError {
    return this.errorOf(waitMessages.tooMany(limit, this.most));
  }

  private errorOf(message: string): RateLimitWaitersError {
    const known = this.errors.get(message);
    if (known !== undefined) return known;
    if (this.errors.size === 0) setImmediate(() => this.errors.clear());
    const error = new RateLimitWaitersError(message);
    this.errors.set(message, error);
    return error;
  }
}
