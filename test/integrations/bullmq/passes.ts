import { expect } from '@jest/globals';

/** A job was let go at some time between these two, in milliseconds: it came to a worker, and its start was noted. */
export interface Pass {
  readonly from: number;
  readonly to: number;
}

/** In no stretch were there more jobs let go for sure than the limit allows; on a busy machine there are fewer that are sure. */
export function expectWithinRate(
  passes: readonly Pass[],
  { rate, interval, burst }: { rate: number; interval: number; burst: number },
): void {
  for (const { from } of passes) {
    for (const { to } of passes) {
      if (to < from) continue;
      const count = passes.filter((pass) => pass.from >= from && pass.to <= to).length;
      expect(count).toBeLessThanOrEqual(burst + Math.floor(((to - from) * rate) / interval));
    }
  }
}
