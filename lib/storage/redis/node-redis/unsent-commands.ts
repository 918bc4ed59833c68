type Listener = () => void;

/**
 * The commands that node-redis holds and has not sent yet. While a connection is down or its server reads nothing, they would wait, and a
 * check would be charged long after its caller gave up. It serves as the `AbortSignal` of all commands of a connection: node-redis adds a
 * listener for each command, and removes it as soon as the command is sent.
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

  /** Removes the commands that are held now and that node-redis doesn't send in its turn. */
  abandon(): void {
    if (this.listeners.size === 0) return;
    const held = [...this.listeners];
    const abandon = () => {
      for (const listener of held) if (this.listeners.delete(listener)) listener();
    };
    setImmediate(() => setImmediate(abandon));
  }
}
