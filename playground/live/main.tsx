import { render } from 'preact';
import { Live } from './page.js';
import type { Route } from './route.js';

const target = document.querySelector('#live')!;

try {
  const response = await fetch('/playground/routes');
  if (!response.ok) throw new Error(`/playground/routes answered ${response.status}`);
  render(<Live routes={(await response.json()) as Route[]} />, target);
} catch (error) {
  render(<p role="alert">The app does not answer: {String(error)}</p>, target);
}
