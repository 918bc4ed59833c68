import { h, render } from 'preact';
import { Comparison } from './comparison.js';
import { ATTRIBUTES, readAttributes } from './attributes.js';

/** The style sheet, which the build puts here. */
declare const STYLE: string;

/**
 * `<sluice-comparison>`: the same traffic for several algorithms, side by side. Its attributes say what it begins with
 * (`attributes.ts`); one that is changed makes it begin anew. A wrong one is told in its place.
 */
export class SluiceComparison extends HTMLElement {
  static readonly observedAttributes: readonly string[] = ATTRIBUTES;

  private readonly root = this.attachShadow({ mode: 'open' });
  private isDue = false;

  connectedCallback(): void {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    this.root.adoptedStyleSheets = [sheet];
    this.draw();
  }

  disconnectedCallback(): void {
    render(null, this.root);
  }

  attributeChangedCallback(): void {
    if (!this.isConnected || this.isDue) return;
    this.isDue = true;
    // Those that are changed together are read together.
    queueMicrotask(() => {
      this.isDue = false;
      if (this.isConnected) this.draw();
    });
  }

  private draw(): void {
    const given = Object.fromEntries(ATTRIBUTES.map((name) => [name, this.getAttribute(name) ?? undefined]));
    render(content(given), this.root);
  }
}

/** The comparison, made anew for other attributes, or what is wrong with them. */
function content(given: Record<string, string | undefined>) {
  try {
    return h(Comparison, { key: JSON.stringify(given), begin: readAttributes(given) });
  } catch (error) {
    return h('p', { role: 'alert', class: 'wrong' }, error instanceof Error ? error.message : String(error));
  }
}

// A page may load the module twice, under two addresses.
if (customElements.get('sluice-comparison') === undefined) customElements.define('sluice-comparison', SluiceComparison);
