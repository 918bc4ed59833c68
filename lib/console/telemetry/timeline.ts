import { addBucket, type Bucket, emptyBucket, readBucket, writeBucket } from './bucket.js';

/** The length of a step, and the number of steps to keep. */
export interface Resolution {
  readonly stepMs: number;
  readonly steps: number;
}

/** 5 minutes in seconds, an hour, and a day. */
export const RESOLUTIONS = [
  { stepMs: 1000, steps: 300 },
  { stepMs: 15_000, steps: 240 },
  { stepMs: 300_000, steps: 288 },
] as const satisfies readonly Resolution[];

/** A step; completed ones are kept as text, which takes less memory. */
interface Cell {
  bucket: Bucket | undefined;
  text: string | undefined;
  /** Whether its current contents have been stored. */
  isStored: boolean;
  /** Whether any version of it may have been stored. */
  wasSent: boolean;
}

/** A step to be stored. */
export interface SentStep {
  readonly stepMs: number;
  readonly step: number;
  readonly text: string;
}

/** A step that is no longer kept. */
export interface OldStep {
  readonly stepMs: number;
  readonly step: number;
}

/** The recent counts of an instance, in steps of each length. */
export class Timeline {
  private readonly rings = RESOLUTIONS.map((resolution) => ({ ...resolution, cells: new Map<number, Cell>() }));
  private old: OldStep[] = [];

  /** Adds counts at a time. */
  add(at: number, bucket: Bucket): void {
    for (const { stepMs, steps, cells } of this.rings) {
      const step = stepOf(at, stepMs);
      let cell = cells.get(step);
      if (cell === undefined) {
        cell = { bucket: emptyBucket(), text: undefined, isStored: false, wasSent: false };
        cells.set(step, cell);
        for (const [other, each] of cells) {
          if (other !== step) close(each);
          if (cells.size > steps || other <= step - steps * stepMs) this.drop(cells, stepMs, other, each);
        }
      }
      const open = (cell.bucket ??= readBucket(cell.text!)!);
      cell.text = undefined;
      cell.isStored = false;
      addBucket(open, bucket);
    }
  }

  /** The steps to store, the newest first, at most `most`; and those that were stored but are no longer kept. */
  unsent(most: number): { steps: SentStep[]; old: OldStep[] } {
    const steps: SentStep[] = [];
    for (const { stepMs, cells } of this.rings) {
      for (const [step, cell] of [...cells].toReversed()) {
        if (cell.isStored || steps.length >= most) continue;
        cell.wasSent = true;
        steps.push({ stepMs, step, text: textOf(cell) });
      }
    }
    return { steps, old: [...this.old] };
  }

  /** Notes that the store has these steps. */
  stored({ steps, old }: { steps: readonly SentStep[]; old: readonly OldStep[] }): void {
    for (const { stepMs, step, text } of steps) {
      const cell = this.cells(stepMs).get(step);
      // It may have grown meanwhile.
      if (cell !== undefined && textOf(cell) === text) cell.isStored = true;
    }
    this.old = this.old.filter((each) => !old.includes(each));
  }

  /** Whether all of it is stored. */
  get isStored(): boolean {
    return this.rings.every(({ cells }) => [...cells.values()].every(({ isStored }) => isStored));
  }

  /** Notes that the store may have lost all of its data. */
  forgetStored(): void {
    for (const { cells } of this.rings) for (const cell of cells.values()) cell.isStored = false;
  }

  /** The steps of a length since a time. */
  *since(stepMs: number, from: number): Iterable<[step: number, bucket: Bucket]> {
    for (const [step, { bucket, text }] of this.cells(stepMs)) {
      if (step >= from) yield [step, bucket ?? readBucket(text!)!];
    }
  }

  private cells(stepMs: number): Map<number, Cell> {
    return this.rings.find((ring) => ring.stepMs === stepMs)!.cells;
  }

  private drop(cells: Map<number, Cell>, stepMs: number, step: number, { wasSent }: Cell): void {
    cells.delete(step);
    if (wasSent) this.old.push({ stepMs, step });
    if (this.old.length > MOST_OLD) this.old.shift();
  }
}

/** More than the number of steps that are kept. */
const MOST_OLD = 1000;

/** The start of the step at a time. */
export function stepOf(at: number, stepMs: number): number {
  return Math.floor(at / stepMs) * stepMs;
}

function textOf({ bucket, text }: Cell): string {
  return text ?? writeBucket(bucket!);
}

function close(cell: Cell): void {
  if (cell.bucket === undefined) return;
  cell.text = writeBucket(cell.bucket);
  cell.bucket = undefined;
}
