/** Calls back once something is used for the first time in this process. */
export class FirstUse {
  private isUsed = false;
  private readonly waiting = new Set<() => void>();

  /** Called when it is used. */
  note(): void {
    if (this.isUsed) return;
    this.isUsed = true;
    for (const call of this.waiting) call();
    this.waiting.clear();
  }

  /** Calls back at its first use; immediately if it has already been used. Returns a function that cancels the callback. */
  whenUsed(call: () => void): () => void {
    if (this.isUsed) call();
    else this.waiting.add(call);
    return () => void this.waiting.delete(call);
  }
}
