import type { ComponentChildren, JSX } from 'preact';
import { useId } from 'preact/hooks';
import { moment, relative } from '../data/format.js';
import { Icon, type IconName } from './icons.js';

export type Tone = 'good' | 'danger' | 'warning' | 'accent' | 'plum' | 'plain';

export function Badge({ tone = 'plain', children }: { tone?: Tone; children: ComponentChildren }): JSX.Element {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function ViewHead({
  title,
  children,
  aside,
}: {
  title: ComponentChildren;
  children?: ComponentChildren;
  aside?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="view-head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {children && <p>{children}</p>}
      </div>
      {aside && <div class="buttons">{aside}</div>}
    </div>
  );
}

/** A framed part of a view, named by its heading. */
export function Panel({
  title,
  note,
  aside,
  id,
  children,
  bare = false,
}: {
  title: string;
  note?: ComponentChildren;
  aside?: ComponentChildren;
  id: string;
  children: ComponentChildren;
  /** True to omit the padding around the contents, for tables. */
  bare?: boolean;
}): JSX.Element {
  return (
    <section class="panel" aria-labelledby={id}>
      <header>
        <div>
          <h2 id={id}>{title}</h2>
          {note && <p>{note}</p>}
        </div>
        {aside}
      </header>
      {bare ? children : <div class="body">{children}</div>}
    </section>
  );
}

export function Empty({
  icon,
  title,
  children,
}: {
  icon: IconName;
  title: string;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="empty">
      <Icon name={icon} />
      <strong>{title}</strong>
      <p>{children}</p>
    </div>
  );
}

export function Note({ children, danger = false }: { children: ComponentChildren; danger?: boolean }): JSX.Element {
  return (
    <p class={danger ? 'note-line danger' : 'note-line'}>
      <Icon name={danger ? 'alert' : 'info'} />
      <span>{children}</span>
    </p>
  );
}

/** A placeholder for missing data: it is loading, or could not be loaded, and the reason. */
export function Waiting({
  error,
  what,
  onRetry,
}: {
  error: string | undefined;
  what: string;
  onRetry: () => void;
}): JSX.Element {
  if (error === undefined)
    return (
      <p class="soft" role="status">
        Loading {what}…
      </p>
    );
  return (
    <div class="panel">
      <div class="empty" role="alert">
        <Icon name="alert" />
        <strong>The {what} could not be loaded</strong>
        <p>{error}</p>
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      </div>
    </div>
  );
}

/** A group of buttons with one selected. */
export function Choice<T extends string>({
  name,
  legend,
  value,
  options,
  onChoose,
}: {
  name: string;
  legend: string;
  value: T;
  options: readonly { value: T; label: string; icon?: IconName }[];
  onChoose: (value: T) => void;
}): JSX.Element {
  return (
    <div class="choice" role="radiogroup" aria-label={legend}>
      {options.map((option) => (
        <label key={option.value} title={option.icon && option.label}>
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChoose(option.value)}
          />
          {option.icon ? (
            <>
              <Icon name={option.icon} />
              <span class="hidden-text">{option.label}</span>
            </>
          ) : (
            option.label
          )}
        </label>
      ))}
    </div>
  );
}

/** The options of a selection from a table of labels. */
export function labelsOf<T extends string>(known: Readonly<Record<T, { readonly label: string }>>): [T, string][] {
  return Object.entries<{ readonly label: string }>(known).map(([value, { label }]) => [value as T, label]);
}

/** A selection that takes little space. */
export function Select<T extends string>({
  label,
  value,
  options,
  onChoose,
}: {
  label: string;
  value: T;
  options: readonly (readonly [value: T, label: string])[];
  onChoose: (value: T) => void;
}): JSX.Element {
  const id = useId();
  return (
    <div class="select">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value as T)}>
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

export function UntilCell({ at, now }: { at: number | null; now: number }): JSX.Element {
  return (
    <td data-label="Until" title={at === null ? undefined : moment(at)}>
      {at === null ? 'without an end' : relative(at, now)}
    </td>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

export function Bar({
  share,
  tone,
  label,
}: {
  share: number;
  tone?: 'near' | 'full' | 'other' | undefined;
  label: string;
}): JSX.Element {
  const filled = Math.min(100, Math.max(0, share * 100));
  return (
    <div
      class={tone ? `bar ${tone}` : 'bar'}
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(filled)}
    >
      <span style={{ width: `${filled}%` }} />
    </div>
  );
}

const MODES = {
  enforce: { tone: 'good', text: 'enforced' },
  shadow: { tone: 'plum', text: 'shadow' },
  off: { tone: 'plain', text: 'off' },
} as const;

/** The mode of a limit, in plain words. */
export function ModeBadge({ mode }: { mode: string }): JSX.Element {
  const known = MODES[mode as keyof typeof MODES] ?? { tone: 'plain', text: mode };
  return <Badge tone={known.tone}>{known.text}</Badge>;
}

/** Content that folds. It is closed at first on small screens. */
export function Fold({
  title,
  note,
  children,
}: {
  title: string;
  note: ComponentChildren;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <details class="fold" open={window.matchMedia('(min-width: 72rem)').matches}>
      <summary>
        <strong>{title}</strong> <span class="soft">{note}</span>
      </summary>
      {children}
    </details>
  );
}

/** A table, with columns of which `numbers` are aligned to the right, and a column of buttons whose title is only read out. */
export function Table({
  id,
  label,
  of,
  numbers = [],
  action,
  children,
}: {
  /** The id of its heading; or use `label`. */
  id?: string;
  label?: string;
  of: readonly string[];
  numbers?: readonly string[];
  action?: string | undefined;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <table class="table" aria-labelledby={id} aria-label={label}>
      <thead>
        <tr>
          {of.map((title) => (
            <th key={title} scope="col" class={numbers.includes(title) ? 'number' : undefined}>
              {title}
            </th>
          ))}
          {action !== undefined && (
            <th scope="col">
              <span class="hidden-text">{action}</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}
