import { Store } from './store.js';

/** The time zones of the page: that of the browser, or UTC. */
export const ZONES = ['local', 'utc'] as const;
export type Zone = (typeof ZONES)[number];

const KEY = 'rate-limit-console-zone';
const LOCAL = new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The zones that differ, of which one is chosen. */
export const OFFERED: readonly Zone[] = LOCAL === 'UTC' ? ['utc'] : ZONES;

/** The chosen time zone. All times of the page are in it. */
export const zone = new Store<Zone>(read());

export function chooseZone(next: Zone): void {
  zone.value = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Without storage, it lasts until the page is left.
  }
}

/** The IANA name of a time zone, as it is shown. */
export function nameOfZone(of: Zone = zone.value): string {
  return of === 'utc' ? 'UTC' : LOCAL;
}

function read(): Zone {
  try {
    const stored = localStorage.getItem(KEY);
    return OFFERED.find((name) => name === stored) ?? OFFERED[0]!;
  } catch {
    return OFFERED[0]!;
  }
}
