/** A turn of the event loop that takes longer than this is one in which the machine was busy with something else. */
const LONGEST_TURN_MS = 10;
const TICK_MS = 2;

/**
 * The milliseconds that a process had for itself. It stands still while the process gets no turn, so what is measured by it does
 * not depend on how busy the machine is: what is due answers some turns later, and none of them counts for more than 10 ms.
 */
export class OwnTime {
  #counted = 0;
  #last = performance.now();
  #timer = setInterval(() => this.#tick(), TICK_MS).unref();

  now() {
    return this.#counted + this.#sinceTick();
  }

  stop() {
    clearInterval(this.#timer);
  }

  #tick() {
    this.#counted += this.#sinceTick();
    this.#last = performance.now();
  }

  #sinceTick() {
    return Math.min(performance.now() - this.#last, LONGEST_TURN_MS);
  }
}
