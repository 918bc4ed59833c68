/** Begins what a node answers of a slot that is on its way to another node, or that no node has. */
const MOVING = /^(?:ASK |TRYAGAIN |CLUSTERDOWN Hash slot)/;

/** What a node said of a slot, and when, on the process's clock. */
interface Saying {
  readonly reason: string;
  readonly at: number;
}

/** The slots of a Cluster that are being moved: why calls of their keys may take long or fail, though their node answers others. */
export class MovingSlots {
  private readonly sayings = new Map<number, Saying>();

  /** Notes an error of a node, if it says that the slot is being moved. Returns whether it does. */
  note(slot: number, message: string): boolean {
    if (!MOVING.test(message)) return false;
    this.sayings.set(slot, { reason: message, at: performance.now() });
    return true;
  }

  /** What was said of a slot within so many milliseconds. */
  reasonOf(slot: number, withinMs: number): string | undefined {
    const saying = this.sayings.get(slot);
    if (saying === undefined) return undefined;
    if (performance.now() - saying.at <= withinMs) return saying.reason;
    this.sayings.delete(slot);
    return undefined;
  }
}
