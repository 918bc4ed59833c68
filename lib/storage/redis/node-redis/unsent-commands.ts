type Listener = () => void;

/**
 * The commands that node-redis holds and has not sent yet. While a connection is down or its server reads nothing, they wait for
 * it: a check would be charged long after its caller gave up. It stands for the `AbortSignal` of all commands of a connection:
 * node-redis adds a listener for each command, and removes it as soon as that is sent.
 */
export class UnsentCommands {
  /** Later commands are sent as usual. */
  readonly aborted = false;
  private readonly listeners = new Set<Listener>();

  addEventListener(_type: string, listener: Listener): void {
    this.listeners.add(listener);
  }

  removeEventListener(_type: string, listener: Listener): void {
    this.listeners.delete(listener);
  }

  /** Takes back what is held now, and still is when node-redis has had its turn to send. */
  abandon(): void {
    if (this.listeners.size === 0) return;
    const held = [...this.listeners];
    const abandon = () => {
      for (const listener of held) if (this.listeners.delete(listener)) listener();
    };
    setImmediate(() => setImmediate(abandon));
  }
}
