import { Store } from './store.js';

export interface Toast {
  readonly id: number;
  readonly kind: 'done' | 'warning';
  readonly text: string;
}

const SHOWN_MS = 8_000;
let count = 0;

export const toasts = new Store<readonly Toast[]>([]);

/** Shows what was done. Warnings stay until they are closed. */
export function say(text: string, kind: Toast['kind'] = 'done'): void {
  const id = ++count;
  toasts.value = [...toasts.value, { id, kind, text }].slice(-3);
  if (kind === 'done') window.setTimeout(() => dismiss(id), SHOWN_MS);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}
