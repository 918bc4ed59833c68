import type { JSX } from 'preact';
import type { Action } from './dialog.js';

/** What can be done to something, by a button. */
export interface Offered {
  /**
   * Tells it from the others, whatever it is called just now.
   * @default the label
   */
  readonly name?: string;
  readonly label: string;
  readonly main?: boolean;
  readonly danger?: boolean;
  readonly action: Action;
}

interface Props {
  /** What they are for, for those who do not see them. */
  readonly title: string;
  readonly offered: readonly Offered[];
  onAct: (action: Action) => void;
}

/** The foot of a panel, with a button for each thing that can be done. */
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
