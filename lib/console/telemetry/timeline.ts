import { addBucket, type Bucket, emptyBucket, readBucket, writeBucket } from './bucket.js';

/** How long a step is, and how many are kept. */
export interface Resolution {
  readonly stepMs: number;
  readonly steps: number;
}

/** 5 minutes by the second, an hour, and a day. */
export const RESOLUTIONS = [
  { stepMs: 1000, steps: 300 },
  { stepMs: 15_000, steps: 240 },
  { stepMs: 300_000, steps: 288 },
] as const satisfies readonly Resolution[];

/** A step; those that are over are kept as text, which takes less memory. */
interface Cell {
  bucket: Bucket | undefined;
  text: string | undefined;
  /** It has been stored as it is. */
  isStored: boolean;
  /** Some version of it may have been stored. */
  wasSent: boolean;
}

/** A step as it is to be stored. */
export interface SentStep {
  readonly stepMs: number;
  readonly step: number;
  readonly text: string;
}

/** A step that is not kept any more. */
export interface OldStep {
  readonly stepMs: number;
  readonly step: number;
}

/** What an instance counted lately, in steps of each length. */
export class Timeline {
  private readonly rings = RESOLUTIONS.map((resolution) => ({ ...resolution, cells: new Map<number, Cell>() }));
  private old: OldStep[] = [];

  /** Adds what happened at a time. */
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

  /** What has to be stored, the newest first, at most so many; and what is stored and not kept any more. */
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

  /** The store has this now. */
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

  /** The store may have lost all that it had. */
  forgetStored(): void {
    for (const { cells } of this.rings) for (const cell of cells.values()) cell.isStored = false;
  }

  /** The steps of a length from a time on. */
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

/** More than all steps that are kept. */
const MOST_OLD = 1000;

/** The beginning of the step of a time. */
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
