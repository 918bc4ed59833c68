import { parseList } from 'structured-headers';

/** What an answer tells of one limit. */
export interface Told {
  readonly limit: string;
  /** The most units at once; nothing if that was not told. */
  readonly quota: number | undefined;
  /** Units that are left. */
  readonly left: number;
  /** Seconds until nothing counts any more; of a limit that refused, until the request fits. */
  readonly wait: number;
  /** Seconds in which the quota comes back; nothing if that was not told. */
  readonly window: number | undefined;
}

/** Reads `RateLimit` and `RateLimit-Policy` (draft 8 and later). Headers that are missing or unreadable tell nothing. */
export function toldBy(headers: Headers): Told[] {
  const policies = new Map(read(headers.get('ratelimit-policy')).map(({ name, numbers }) => [name, numbers]));
  return read(headers.get('ratelimit')).flatMap(({ name, numbers }) => {
    const left = numbers('r');
    const policy = policies.get(name);
    if (left === undefined) return [];
    return [{ limit: name, quota: policy?.('q'), left, wait: numbers('t') ?? 0, window: policy?.('w') }];
  });
}

interface Item {
  readonly name: string;
  readonly numbers: (parameter: string) => number | undefined;
}

function read(header: string | null): Item[] {
  if (header === null) return [];
  try {
    return parseList(header).flatMap(([value, parameters]) => {
      const numbers = (parameter: string) => {
        const number = parameters.get(parameter);
        return typeof number === 'number' ? number : undefined;
      };
      return typeof value === 'string' ? [{ name: value, numbers }] : [];
    });
  } catch {
    return [];
  }
}
