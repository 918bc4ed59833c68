import { hashIdentity, LONGEST_IDENTITY } from '../../engine/limits/identity.js';
import { flatCopy } from '../../engine/util/flat-copy.js';
import { type Field, readCost, reasons } from './fields.js';
import type { ReadLine, WantedFields } from './logged-request.js';
import { RequestKey } from './tracked-keys.js';

/** How to read the lines of a format. */
export interface LineParts<R> {
  readonly format: string;
  /** The parts of a line; `undefined` if it has another format. */
  readonly record: (line: string) => R | undefined;
  readonly time: (record: R) => number | undefined;
  readonly timeName: string;
  /** In the order of the wanted keys. */
  readonly keys: readonly Field<R>[];
  readonly cost: Field<R> | undefined;
  /** Whether a record is simulated; without it, each is. */
  readonly filter: ((record: R) => boolean) | undefined;
}

/** How much of a long identity to show; with its hash it is longer than any short one. */
const SHOWN = 40;
/** The most identities to remember. */
const MOST_REMEMBERED = 50_000;

/** Identities in bounded memory; equal ones share one object. */
class Identities {
  private readonly known = new Map<string, RequestKey>();

  /** A substring would keep the whole chunk of the log alive, so this makes a copy. */
  of(identity: string): RequestKey {
    const known = this.known.get(identity);
    if (known !== undefined) return known;
    const isLong = identity.length > LONGEST_IDENTITY;
    const copy = flatCopy(isLong ? `${identity.slice(0, SHOWN)}…${hashIdentity(identity)}` : identity);
    const key = new RequestKey(copy);
    if (isLong) return key;
    if (this.known.size >= MOST_REMEMBERED) this.known.clear();
    this.known.set(copy, key);
    return key;
  }
}

/** Reads lines as requests. */
export function lineReader<R extends object>(parts: LineParts<R>, wanted: WantedFields): ReadLine {
  const { keys, cost, filter } = parts;
  // Identities of different keys are kept apart.
  const known = keys.map(() => new Identities());
  return (line) => {
    const record = parts.record(line);
    if (record === undefined) return reasons.notOfFormat(parts.format);
    if (filter !== undefined && !filter(record)) return undefined;
    const time = parts.time(record);
    if (time === undefined) return reasons.noTime(parts.timeName);
    const identities: RequestKey[] = [];
    for (let index = 0; index < keys.length; index++) {
      const identity = keys[index]!(record);
      if (identity === undefined) return reasons.noKey(wanted.keys[index]!);
      identities.push(known[index]!.of(identity));
    }
    const units = cost === undefined ? 1 : readCost(cost(record));
    if (units === undefined) return reasons.noCost(wanted.cost!);
    return { time, keys: identities, cost: units };
  };
}
