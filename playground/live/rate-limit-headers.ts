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
}

/** Reads `RateLimit` and `RateLimit-Policy` (draft 8 and later). Headers that are missing or unreadable tell nothing. */
export function toldBy(headers: Headers): Told[] {
  const quotas = new Map(read(headers.get('ratelimit-policy')).map(({ name, numbers }) => [name, numbers('q')]));
  return read(headers.get('ratelimit')).flatMap(({ name, numbers }) => {
    const left = numbers('r');
    return left === undefined ? [] : [{ limit: name, quota: quotas.get(name), left, wait: numbers('t') ?? 0 }];
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
