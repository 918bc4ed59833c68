import type { JSX } from 'preact';
import logo from '../logo.svg';

const PATHS = {
  overview: 'M3 13h4l3-8 4 14 3-6h4',
  limit: 'M4 19V5m0 7h6l3-5 3 10 2-5h2',
  lookup: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14Zm5-2 5 5',
  deviations: 'M4 18h5l6-12h5m-4-3 4 3-4 3',
  rates: 'M4 7h9m4 0h3M4 17h3m4 0h9M15 4.5v5M9 14.5v5',
  lists: 'M9 6h11M9 12h11M9 18h11M4 6h.01M4 12h.01M4 18h.01',
  changes: 'M12 7v5l3 2m6-2a9 9 0 1 1-3-6.7M21 4v4h-4',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8Zm0-13v2m0 14v2M3 12h2m14 0h2M5.6 5.6 7 7m10 10 1.4 1.4m0-12.8L17 7M7 17l-1.4 1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z',
  system: 'M4 5h16v11H4zM9 20h6m-3-4v4',
  alert:
    'M12 8.5v4.5m0 3.2h.01M10.4 4.3 2.9 17.2a1.9 1.9 0 0 0 1.6 2.8h15a1.9 1.9 0 0 0 1.6-2.8L13.6 4.3a1.9 1.9 0 0 0-3.2 0Z',
  done: 'm8 12.5 2.8 2.8L16.5 9M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z',
  close: 'M6 6l12 12M18 6 6 18',
  sort: 'M12 5v14m-6-6 6 6 6-6',
  plus: 'M12 5v14M5 12h14',
  info: 'M12 11v5m0-8.5h.01M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z',
  pause: 'M9 5v14M15 5v14',
  play: 'M7 4.5v15l12-7.5z',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.8"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

/** A gate that lets part of the stream through. */
export function Logo(): JSX.Element {
  return <span class="logo" aria-hidden="true" dangerouslySetInnerHTML={{ __html: logo }} />;
}
