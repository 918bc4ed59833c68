/** Colours that canvases draw with. The style sheet has them, for light and dark. */
export interface Palette {
  readonly ink: string;
  readonly muted: string;
  readonly line: string;
  readonly edge: string;
  readonly allowed: string;
  readonly refused: string;
  readonly left: string;
  readonly leftArea: string;
  readonly worst: string;
  readonly worstArea: string;
}

const VARIABLES: Record<keyof Palette, string> = {
  ink: '--text-soft',
  muted: '--chart-axis',
  line: '--chart-grid',
  edge: '--line-strong',
  allowed: '--chart-allowed',
  refused: '--chart-refused',
  left: '--curve',
  leftArea: '--curve-area',
  worst: '--chart-other',
  worstArea: '--worst-area',
};

/** The colours as they are where `probe` stands: an element that is not shown. */
export function readPalette(probe: HTMLElement): Palette {
  const entries = Object.entries(VARIABLES).map(([name, variable]) => {
    probe.style.color = `var(${variable})`;
    return [name, getComputedStyle(probe).color];
  });
  return Object.fromEntries(entries) as Record<keyof Palette, string>;
}

/** Calls back when the page may have changed its colours. Returns what ends that. */
export function onColours(changed: () => void): () => void {
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  scheme.addEventListener('change', changed);
  const observer = new MutationObserver(changed);
  for (const element of [document.documentElement, document.body]) observer.observe(element, { attributes: true });
  return () => {
    scheme.removeEventListener('change', changed);
    observer.disconnect();
  };
}
