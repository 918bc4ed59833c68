/** When a unit was used: at some time between these two, in milliseconds. */
export type Use = [before: number, after: number];

/** The most units that the limit lets pass in a stretch of time. */
export function most(
  { algo, rate, interval }: { algo: string; rate: number; interval: number },
  stretchMs: number,
): number {
  if (algo === 'gcra' || algo === 'token-bucket') return rate + Math.floor((rate * stretchMs) / interval);
  return rate * (Math.ceil(stretchMs / interval) + (algo === 'fixed-window' ? 1 : 0));
}

/** The most units that were surely used in one stretch of so many milliseconds. */
export function mostWithin(uses: readonly Use[], stretchMs: number): number {
  const ends = uses.map(([, after]) => after).toSorted((one, other) => one - other);
  let ended = 0;
  let most = 0;
  for (const [first, [from]] of uses.entries()) {
    while (ended < ends.length && ends[ended]! < from + stretchMs) ended++;
    most = Math.max(most, ended - first);
  }
  return most;
}

/** The most units that were surely used in one window of those that follow each other since the epoch. */
export function mostInWindows(uses: readonly Use[], lengthMs: number, clockMs: number): number {
  const counts = new Map<number, number>();
  for (const [before, after] of uses) {
    const number = Math.floor((before - clockMs) / lengthMs);
    if (number === Math.floor((after + clockMs) / lengthMs)) counts.set(number, (counts.get(number) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}
