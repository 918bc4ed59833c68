/** Calls back once something is used for the first time in this process. */
export class FirstUse {
  private isUsed = false;
  private readonly waiting = new Set<() => void>();

  /** It is used. */
  note(): void {
    if (this.isUsed) return;
    this.isUsed = true;
    for (const call of this.waiting) call();
    this.waiting.clear();
  }

  /** Calls back at its first use: at once if it is used already. Returns a function that withdraws the call. */
  whenUsed(call: () => void): () => void {
    if (this.isUsed) call();
    else this.waiting.add(call);
    return () => void this.waiting.delete(call);
  }
}
