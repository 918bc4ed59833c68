import { SharedDeadline, TimedCall } from '../../../storage/redis/deadline.js';

/** Bounds how long requests wait for functions of the app. */
export class AnswerDeadline {
  private readonly deadline: SharedDeadline;

  constructor(readonly ms: number) {
    this.deadline = new SharedDeadline(ms);
  }

  /** Settles like the promise, or rejects after the deadline. */
  of<T>(promised: PromiseLike<T>, late: () => Error): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = new AwaitedAnswer(() => reject(late()));
      this.deadline.begin(call);
      Promise.resolve(promised)
        .finally(() => this.deadline.end(call))
        .then(resolve, reject);
    });
  }
}

class AwaitedAnswer extends TimedCall {
  constructor(override readonly expire: () => void) {
    super();
  }
}
