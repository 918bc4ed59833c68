import { choiceOf, Store } from './store.js';

export type Theme = 'system' | 'light' | 'dark';

/** The chosen theme. Charts are redrawn when it changes. */
export const theme = choiceOf<Theme>('rate-limit-console-theme', ['system', 'light', 'dark']);

/** Counts changes of the colours, by the switch or by the system. */
export const colours = new Store(0);

export function apply(): void {
  if (theme.value === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme.value;
  colours.value++;
}

/** The value of a colour token, as a canvas needs it. */
export function colour(token: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${token})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

theme.listen(apply);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => colours.value++);
