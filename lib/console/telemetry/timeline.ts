import { addBucket, type Bucket, emptyBucket, isEmpty, readBucket, subtractBucket, writeBucket } from './bucket.js';

/** The length of a step, and the number of steps to keep. */
export interface Resolution {
  readonly stepMs: number;
  readonly steps: number;
}

/** 5 minutes in seconds, an hour, a day, a week, and 30 days. */
export const RESOLUTIONS = [
  { stepMs: 1000, steps: 300 },
  { stepMs: 15_000, steps: 240 },
  { stepMs: 300_000, steps: 288 },
  { stepMs: 3_600_000, steps: 168 },
  { stepMs: 10_800_000, steps: 240 },
] as const satisfies readonly Resolution[];

/** The current step is stored each second only up to this length. A longer one would be sent thousands of times. */
const EACH_SECOND_MS = 300_000;

/** A step. Completed steps are kept as text, which takes less memory. */
interface Cell {
  bucket?: Bucket | undefined;
  text?: string | undefined;
  /** The contents that the store certainly has. */
  stored?: string;
  /** Increases with each change. */
  version: number;
  /** True if the current contents have been stored. */
  isStored: boolean;
  /** True if any version of the contents may have been stored. */
  wasSent: boolean;
}

interface SentStep {
  readonly stepMs: number;
  readonly step: number;
  readonly text: string;
  readonly version: number;
}

/** A step that is no longer kept. */
type OldStep = Pick<SentStep, 'stepMs' | 'step'>;

/** The steps of a call: those to store, and stored ones that are no longer kept. */
export interface Sent {
  readonly steps: readonly SentStep[];
  readonly old: readonly OldStep[];
}

/** The recent counts of an instance, in steps of each length. */
export class Timeline {
  private readonly rings = RESOLUTIONS.map((resolution) => ({ ...resolution, cells: new Map<number, Cell>() }));
  private old: OldStep[] = [];

  add(at: number, bucket: Bucket): void {
    for (const { stepMs, steps, cells } of this.rings) {
      const step = stepOf(at, stepMs);
      let cell = cells.get(step);
      if (cell === undefined) {
        cell = { bucket: emptyBucket(), version: 0, isStored: false, wasSent: false };
        cells.set(step, cell);
        for (const [other, each] of cells) {
          if (other !== step) close(each);
          if (cells.size > steps || other <= step - steps * stepMs) this.drop(cells, stepMs, other, each);
        }
      }
      const open = (cell.bucket ??= readBucket(cell.text!)!);
      cell.text = undefined;
      cell.isStored = false;
      cell.version++;
      addBucket(open, bucket);
    }
  }

  /**
   * The steps to store, the newest first, at most `most`; and stored steps that are no longer kept. With `isBrief`, the current steps of
   * hours are left out.
   */
  unsent(most: number, isBrief = false): Sent {
    const steps: SentStep[] = [];
    for (const { stepMs, cells } of this.rings) {
      for (const [step, cell] of [...cells].toReversed()) {
        if (cell.isStored || steps.length >= most) continue;
        if (isBrief && stepMs > EACH_SECOND_MS && cell.bucket !== undefined) continue;
        cell.wasSent = true;
        steps.push({ stepMs, step, text: cell.text ?? writeBucket(cell.bucket!), version: cell.version });
      }
    }
    return { steps, old: [...this.old] };
  }

  /** Records that the store has these steps. */
  stored({ steps, old }: Sent): void {
    for (const { stepMs, step, text, version } of steps) {
      const cell = this.cells(stepMs).get(step);
      if (cell === undefined) continue;
      cell.stored = text;
      // The step may have changed in the meantime.
      if (cell.version !== version) continue;
      cell.isStored = true;
      if (cell.text !== undefined) cell.text = text;
    }
    this.old = this.old.filter((each) => !old.includes(each));
  }

  /** The steps of a length that the store certainly has. */
  storedSteps(stepMs: number): number[] {
    return [...this.cells(stepMs)].flatMap(([step, { stored }]) => (stored === undefined ? [] : [step]));
  }

  /** Subtracts counts that others have added to the sum of ended instances: the stored contents of these steps. */
  takeFolded(stepMs: number, folded: readonly number[]): void {
    const cells = this.cells(stepMs);
    for (const step of folded) {
      const cell = cells.get(step);
      if (cell?.stored === undefined) continue;
      const left = cell.bucket ?? readBucket(cell.text!)!;
      subtractBucket(left, readBucket(cell.stored)!);
      if (isEmpty(left)) cells.delete(step);
      else cells.set(step, { bucket: left, version: cell.version + 1, isStored: false, wasSent: cell.wasSent });
    }
  }

  get isStored(): boolean {
    return this.rings.every(({ cells }) => [...cells.values()].every(({ isStored }) => isStored));
  }

  /** Records that the store may have lost all its data. */
  forgetStored(): void {
    for (const { cells } of this.rings) for (const cell of cells.values()) cell.isStored = false;
  }

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

function close(cell: Cell): void {
  if (cell.bucket === undefined) return;
  const text = writeBucket(cell.bucket);
  // Keeps one text instead of two equal ones.
  cell.text = text === cell.stored ? cell.stored : text;
  cell.bucket = undefined;
}
