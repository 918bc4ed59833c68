import { waitMessages } from '../errors/messages/wait.js';
import { RateLimitWaitersError } from './rate-limit-waiters.error.js';

/** How many times the bound of one counter may wait for all counters together. */
const COUNTERS = 10;

/** Counts the calls of a process that wait. */
export class WaitingCount {
  private all = 0;
  /** The errors of this turn, which calls share: making one costs more than the rest of a call. */
  private readonly told = new Map<string, RateLimitWaitersError>();

  constructor(
    /** The most that wait for one counter. */
    readonly most: number,
  ) {}

  /** Whether as many wait for all counters together as may. */
  get isFull(): boolean {
    return this.all >= this.most * COUNTERS;
  }

  /** What a call is told that comes when as many wait for all counters as may. */
  refusalOfAll(limit: string): RateLimitWaitersError {
    return this.tell(waitMessages.tooManyInAll(limit, this.all, this.most));
  }

  readonly begin = (): void => {
    this.all++;
  };

  readonly end = (): void => {
    this.all--;
  };

  /** What a call is told that comes when as many wait for its counter as may. */
  refusal(limit: string): RateLimitWaitersError {
    return this.tell(waitMessages.tooMany(limit, this.most));
  }

  private tell(message: string): RateLimitWaitersError {
    const known = this.told.get(message);
    if (known !== undefined) return known;
    if (this.told.size === 0) setImmediate(() => this.told.clear());
    const error = new RateLimitWaitersError(message);
    this.told.set(message, error);
    return error;
  }
}
