/** What canvases draw with. The style sheet has them, for light and dark. */
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
  /** The family of its letters. */
  readonly font: string;
}

const VARIABLES: Record<Exclude<keyof Palette, 'font'>, string> = {
  ink: '--text-soft',
  muted: '--chart-axis',
  line: '--chart-grid',
  edge: '--line-strong',
  allowed: '--chart-allowed',
  refused: '--chart-refused',
  left: '--curve',
  leftArea: '--curve-area',
  worst: '--chart-other',
  worstArea: '--chart-other-fill',
};

/** The colours and letters as they are where `probe` stands: an element that is not shown. */
export function readPalette(probe: HTMLElement): Palette {
  const entries = Object.entries(VARIABLES).map(([name, variable]) => {
    probe.style.color = `var(${variable})`;
    return [name, getComputedStyle(probe).color];
  });
  const colours = Object.fromEntries(entries) as Record<keyof typeof VARIABLES, string>;
  return { ...colours, font: getComputedStyle(probe).fontFamily };
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
