/** The beginning of a node's reply about a slot that is moving to another node, or that no node serves. */
const MOVING = /^(?:ASK |TRYAGAIN |CLUSTERDOWN Hash slot)/;

/** A node's reply about a slot, and when it came by the process's clock. */
interface Saying {
  readonly reason: string;
  readonly at: number;
}

/**
 * The slots of a Cluster that are moving, which explains why calls on their keys may be slow or fail while the node answers
 * others.
 */
export class MovingSlots {
  private readonly sayings = new Map<number, Saying>();

  /** Records an error reply if it says that the slot is moving, and returns whether it does. */
  note(slot: number, message: string): boolean {
    if (!MOVING.test(message)) return false;
    this.sayings.set(slot, { reason: message, at: performance.now() });
    return true;
  }

  /** The latest reply about a slot within the last `withinMs` milliseconds. */
  reasonOf(slot: number, withinMs: number): string | undefined {
    const saying = this.sayings.get(slot);
    if (saying === undefined) return undefined;
    if (performance.now() - saying.at <= withinMs) return saying.reason;
    this.sayings.delete(slot);
    return undefined;
  }
}
