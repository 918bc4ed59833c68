import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { RequestError } from '../data/client.js';
import { messageOf } from '../data/store.js';
import { Field, type FieldSpec } from './field.js';

/** An action with a button. */
export interface Offered {
  /**
   * Identifies the action, regardless of its current label.
   * @default the label
   */
  readonly name?: string;
  readonly label: string;
  readonly main?: boolean;
  readonly danger?: boolean | undefined;
  readonly action: Action;
}

interface Props {
  /** A description of the buttons for screen readers. */
  readonly title: string;
  readonly offered: readonly Offered[];
  onAct: (action: Action) => void;
}

/** The footer of a panel with a button for each action. */
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

/** A change that a dialog makes. */
export interface Action {
  readonly title: string;
  readonly intro: ComponentChildren;
  readonly fields: readonly FieldSpec[];
  readonly confirm: string;
  readonly danger?: boolean;
  /**
   * The reason to fill in.
   * @default none
   */
  readonly reason?: string;
  /** True if the button that opens the dialog disappears afterwards. */
  readonly gone?: boolean;
  /** Makes the change. If it rejects, errors are displayed next to their fields, or above the buttons. */
  run(values: Readonly<Record<string, string>>): Promise<void>;
}

const REASON: FieldSpec = {
  name: 'reason',
  label: 'Reason',
  hint: 'Appears in the log of changes. Up to 200 characters.',
  required: true,
};

/** The dialog of an action, while it is open, and a function that opens it. */
export function useDialog(): [JSX.Element | undefined, (action: Action | undefined) => void] {
  const [action, setAction] = useState<Action>();
  return [action && <ActionDialog action={action} onClose={() => setAction(undefined)} />, setAction];
}

/** Requests the fields of an action and a reason. Escape closes it, and the focus returns to its previous place. */
function ActionDialog({ action, onClose }: { action: Action; onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const opener = useRef<Element | null>(null);
  const fields = [...action.fields, action.reason ? { ...REASON, value: action.reason } : REASON];
  const [values, setValues] = useState(() => Object.fromEntries(fields.map(({ name, value }) => [name, value ?? ''])));
  const [errors, setErrors] = useState<Readonly<Record<string, string>>>({});
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);

  useEffect(() => {
    const element = dialog.current!;
    opener.current = document.activeElement;
    element.showModal();
    element.querySelector<HTMLElement>('input, select')?.focus();
    return () => element.close();
  }, []);

  const close = (isDone: boolean): void => {
    const { current: from } = opener;
    dialog.current?.close();
    const lasts = from instanceof HTMLElement && from.isConnected && !(isDone && action.gone);
    (lasts ? from : document.querySelector<HTMLElement>('main h1'))?.focus();
    onClose();
  };

  const fail = (wrong: Readonly<Record<string, string>>, text: string): void => {
    setErrors(wrong);
    setFailure(text);
    requestAnimationFrame(() => dialog.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
  };

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (busy) return;
    const missing = fields.filter(({ name, required }) => required && values[name]?.trim() === '');
    if (missing.length > 0) {
      fail(Object.fromEntries(missing.map(({ name, label }) => [name, `${label} is missing.`])), '');
      return;
    }
    setBusy(true);
    try {
      await action.run(values);
      close(true);
    } catch (error) {
      const errors = error instanceof RequestError ? error.fields : [];
      const known = errors.filter(({ field }) => fields.some(({ name }) => name === field));
      const unknown = errors.filter((one) => !known.includes(one)).map(({ field, message }) => `${field}: ${message}`);
      fail(
        Object.fromEntries(known.map(({ field, message }) => [field, message])),
        errors.length === 0 ? messageOf(error) : unknown.join(' '),
      );
    } finally {
      setBusy(false);
    }
  };

  return (
    <dialog
      ref={dialog}
      aria-labelledby="dialog-title"
      onCancel={(event) => {
        event.preventDefault();
        close(false);
      }}
    >
      <form noValidate autoComplete="off" onSubmit={(event) => void submit(event)}>
        <h2 id="dialog-title">{action.title}</h2>
        <p class="intro">{action.intro}</p>
        {fields.map((field) => (
          <Field
            key={field.name}
            spec={field}
            value={values[field.name] ?? ''}
            error={errors[field.name]}
            onChange={(value) => setValues((last) => ({ ...last, [field.name]: value }))}
          />
        ))}
        {failure && (
          <p class="alert" role="alert">
            {failure}
          </p>
        )}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={() => close(false)}>
            Cancel
          </button>
          <button type="submit" class={action.danger ? 'button main danger' : 'button main'} aria-disabled={busy}>
            {action.confirm}
          </button>
        </div>
      </form>
    </dialog>
  );
}
