import { Store } from './store.js';

export interface Toast {
  readonly id: number;
  readonly kind: 'done' | 'warning';
  readonly text: string;
  /** Undoes what the toast reports. */
  readonly undo?: () => Promise<void>;
}

const SHOWN_MS = 8_000;
/** How long a change can be undone from its toast. */
const UNDO_MS = 20_000;
let count = 0;

export const toasts = new Store<readonly Toast[]>([]);

/** Shows what was done, and how to undo it. Warnings stay until they are closed. */
export function say(text: string, kind: Toast['kind'] = 'done', undo?: () => Promise<void>): void {
  const id = ++count;
  toasts.value = [...toasts.value, { id, kind, text, ...(undo && { undo }) }].slice(-3);
  if (kind === 'done') window.setTimeout(() => dismiss(id), undo ? UNDO_MS : SHOWN_MS);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Undoes what a toast reports, and says whether that worked. */
export async function undo({ id, undo: run }: Toast): Promise<void> {
  dismiss(id);
  try {
    await run?.();
  } catch (error) {
    say(`It was not undone: ${error instanceof Error ? error.message : String(error)}`, 'warning');
  }
}
