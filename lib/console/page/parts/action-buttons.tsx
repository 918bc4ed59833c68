import type { JSX } from 'preact';
import type { Action } from './dialog.js';

/** An action that a button offers. */
export interface Offered {
  /**
   * Identifies it, whatever its label is at the moment.
   * @default the label
   */
  readonly name?: string;
  readonly label: string;
  readonly main?: boolean;
  readonly danger?: boolean;
  readonly action: Action;
}

interface Props {
  /** What the buttons are for, for screen readers. */
  readonly title: string;
  readonly offered: readonly Offered[];
  onAct: (action: Action) => void;
}

/** The footer of a panel, with a button for each action. */
export function ActionButtons({ title, offered, onAct }: Props): JSX.Element {
  return (
    <footer>
      <div class="buttons" role="group" aria-label={title}>
        {offered.map(({ name, label, main, danger, action }) => (
          <button
            key={name ?? label}
            type="button"
            class={`button small${main ? ' main' : ''}${danger ? ' danger' : ''}`}
            onClick={() => onAct(action)}
          >
            {label}
          </button>
        ))}
      </div>
    </footer>
  );
}
