import { hashIdentity, LONGEST_IDENTITY } from '../../engine/limits/identity.js';
import { flatCopy } from '../../engine/util/bounded-maps.js';
import { type Field, readCost, type ReadLine, reasons, type WantedFields } from './logged-request.js';
import { RequestKey } from './tracked-keys.js';
import { StringDecoder } from 'node:string_decoder';

export const MAX_LINE_LENGTH = 65_536;

/** Splits bytes into lines. The text of a line that is too long is neither kept nor passed on. */
export class LineSplitter {
  private readonly decoder = new StringDecoder('utf8');
  /** The beginning of a line that continues in the next chunk; empty if the line is too long. */
  private pending: string[] = [];
  private pendingLength = 0;

  /** `onLine` gets `undefined` for a line that is too long. */
  constructor(private readonly onLine: (text: string | undefined) => void) {}

  push(chunk: Buffer): void {
    this.cut(this.decoder.write(chunk));
  }

  /** The last line may have no line end. */
  end(): void {
    this.cut(this.decoder.end());
    if (this.pendingLength > 0) this.flush();
  }

  private cut(text: string): void {
    let start = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      const line = text.slice(start, end);
      if (this.pendingLength === 0) this.line(line);
      else {
        this.hold(line);
        this.flush();
      }
      start = end + 1;
    }
    if (start < text.length) this.hold(text.slice(start));
  }

  private hold(part: string): void {
    this.pendingLength += part.length;
    if (this.isTooLong) this.pending = [];
    else this.pending.push(part);
  }

  private flush(): void {
    const line = this.isTooLong ? undefined : this.pending.join('');
    this.pending = [];
    this.pendingLength = 0;
    if (line === undefined) this.onLine(undefined);
    else this.line(line);
  }

  /** A carriage return at the end doesn't count. */
  private get isTooLong(): boolean {
    return this.pendingLength > MAX_LINE_LENGTH + 1;
  }

  private line(text: string): void {
    const line = text.endsWith('\r') ? text.slice(0, -1) : text;
    this.onLine(line.length > MAX_LINE_LENGTH ? undefined : line);
  }
}

export interface LineParts<R> {
  readonly format: string;
  /** The parts of a line; `undefined` if it has another format. */
  readonly record: (line: string) => R | undefined;
  readonly time: (record: R) => number | undefined;
  readonly timeName: string;
  /** In the order of the requested keys. */
  readonly keys: readonly Field<R>[];
  readonly cost: Field<R> | undefined;
  /** The bytes of responses, if a limit counts them. */
  readonly bytes: { readonly name: string; readonly of: Field<R> } | undefined;
  /** Whether a record is simulated; without it, each is. */
  readonly filter: ((record: R) => boolean) | undefined;
}

/** Maximum length of an identity to display. With its hash, a cut identity is longer than any uncut one. */
const SHOWN = 40;
const MOST_REMEMBERED = 50_000;

/** Identities in limited memory. Equal ones share one object. */
class Identities {
  private readonly known = new Map<string, RequestKey>();

  /** Makes a copy, since a substring would keep the whole chunk of the log in memory. */
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

export function lineReader<R extends object>(parts: LineParts<R>, wanted: WantedFields): ReadLine {
  const { keys, cost, bytes, filter } = parts;
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
    if (bytes === undefined) return { time, keys: identities, cost: units };
    const sent = readCost(bytes.of(record));
    return sent === undefined ? reasons.noBytes(bytes.name) : { time, keys: identities, cost: units, bytes: sent };
  };
}
