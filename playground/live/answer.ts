import { type Told, toldBy } from './rate-limit-headers.js';
import { nameOf, requestOf, type Route, type User } from './route.js';

/** What the app answered to one request. */
export interface Answer {
  readonly id: number;
  readonly route: Route;
  /** When it came, in milliseconds since the epoch. */
  readonly at: number;
  /** 0 if there was none. */
  readonly status: number;
  /** How long it took, in milliseconds. */
  readonly took: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  readonly told: readonly Told[];
  /** When the request may be sent again, in milliseconds since the epoch, if it was refused and that was told. */
  readonly retryAt: number | undefined;
  /** The limits that refused it, as far as it was told. */
  readonly refusedBy: readonly string[];
}

/** Whether a limit refused the request. */
export function isRefusal({ status }: Pick<Answer, 'status'>): boolean {
  return status === 429 || status === 503;
}

let count = 0;

/** Sends a request, and resolves with what came of it. */
export async function send(route: Route, user: User): Promise<Answer> {
  const sent = performance.now();
  const answer = { id: ++count, route, status: 0, headers: [], body: '', told: [], retryAt: undefined, refusedBy: [] };
  try {
    const response = await fetch(route.path, requestOf(route, user));
    const body = await response.text();
    const wait = Number(response.headers.get('retry-after') ?? Number.NaN);
    return {
      ...answer,
      at: Date.now(),
      took: performance.now() - sent,
      status: response.status,
      headers: [...response.headers],
      body,
      told: toldBy(response.headers),
      retryAt: Number.isFinite(wait) ? Date.now() + wait * 1000 : undefined,
      refusedBy: isRefusal(response) ? limitsIn(body) : [],
    };
  } catch (error) {
    return { ...answer, at: Date.now(), took: performance.now() - sent, body: `${nameOf(route)}: ${String(error)}` };
  }
}

/** The limits that the body of a refusal names. */
function limitsIn(body: string): string[] {
  try {
    const { limits } = JSON.parse(body) as { limits?: unknown };
    return Array.isArray(limits) ? limits.map(String) : [];
  } catch {
    return [];
  }
}
