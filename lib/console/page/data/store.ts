import { useEffect, useReducer, useState } from 'preact/hooks';
import type { Lookup } from '../../api.js';

/** A value that views display and that can change. */
export class Store<T> {
  #value: T;
  readonly #listeners = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set value(value: T) {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** A store for a choice that outlasts the page: one of the options, the first by default. */
export function choiceOf<T extends string>(key: string, options: readonly T[]): Store<T> {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(key);
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
  const choice = new Store(options.find((option) => option === stored) ?? options[0]!);
  choice.listen(() => {
    try {
      localStorage.setItem(key, choice.value);
    } catch {
      // As above.
    }
  });
  return choice;
}

/** The value of a store. The component is rendered again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, draw] = useReducer<number, void>((count) => count + 1, 0);
  useEffect(() => {
    const seen = store.value;
    const end = store.listen(() => draw());
    // It may have changed since the component was rendered.
    if (!Object.is(seen, store.value)) draw();
    return end;
  }, [store]);
  return store.value;
}

interface Toast {
  readonly id: number;
  readonly kind: 'done' | 'warning';
  readonly text: string;
  /** Undoes the change that the toast reports. */
  readonly undo: (() => Promise<void>) | undefined;
}

const SHOWN_MS = 8_000;
/** How long a change can be undone from its toast. */
const UNDO_MS = 20_000;
let count = 0;

export const toasts = new Store<readonly Toast[]>([]);

/** Displays a message about a change, with a way to undo it. Warnings stay until they are closed. */
export function say(text: string, kind: Toast['kind'] = 'done', undo?: () => Promise<void>): void {
  const id = ++count;
  toasts.value = [...toasts.value, { id, kind, text, undo }].slice(-3);
  if (kind === 'done') window.setTimeout(() => dismiss(id), undo ? UNDO_MS : SHOWN_MS);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function sayFailed(error: unknown): void {
  say(messageOf(error), 'warning');
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Undoes the change of a toast, and reports the result. */
export async function undo({ id, undo: run }: Toast): Promise<void> {
  dismiss(id);
  try {
    await run?.();
  } catch (error) {
    say(`It was not undone: ${messageOf(error)}`, 'warning');
  }
}

/** The identity of the lookup view. It is only kept in memory: in the address it would end up in histories and logs. */
export const subject = new Store<{ readonly identity: string; readonly found?: Lookup }>({ identity: '' });

/** Identities that were typed here, by their hashes in top keys and the log. */
const known = new Map<string, string>();

export function remember(id: string, identity: string): void {
  known.set(id, identity);
}

export function identityOf(id: string): string | undefined {
  return known.get(id);
}

/** How far the server's clock is ahead of this browser's, in milliseconds. */
export const skew = new Store(0);

/** The current time on the server's clock. The component is rendered again each second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), 1_000);
    return () => window.clearInterval(timer);
  }, []);
  return now + skew.value;
}

interface Connection {
  readonly state: 'connecting' | 'live' | 'paused' | 'lost' | 'denied';
  /** While the connection is lost: true if the app still answers other requests. */
  readonly answers?: boolean;
  /** Increases with each reconnect, after which earlier data may be outdated. */
  readonly epoch: number;
  /** A problem that the app reports, such as that Redis doesn't respond. */
  readonly problem?: string;
}

export const connection = new Store<Connection>({ state: 'connecting', epoch: 0 });
