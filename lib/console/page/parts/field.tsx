import type { JSX } from 'preact';
import { useId } from 'preact/hooks';
import { Icon } from './icons.js';

/** A field of a form, with the name of the request's field. */
export interface FieldSpec {
  readonly name: string;
  readonly label: string;
  readonly hint?: string | undefined;
  readonly value?: string;
  readonly placeholder?: string | undefined;
  readonly required?: boolean;
  /** Options to choose from, instead of text. */
  readonly options?: readonly { readonly value: string; readonly label: string }[];
  /** Values that can be filled in with one click. */
  readonly quick?: readonly string[];
}

interface Props {
  readonly spec: FieldSpec;
  readonly value: string;
  readonly error: string | undefined;
  onChange: (value: string) => void;
}

export function Field({ spec, value, error, onChange }: Props): JSX.Element {
  const id = useId();
  const described = [error && `${id}-error`, spec.hint && `${id}-hint`].filter(Boolean).join(' ');
  const shared = {
    id,
    name: spec.name,
    value,
    'aria-invalid': error ? ('true' as const) : undefined,
    'aria-describedby': described || undefined,
    'aria-required': spec.required ? ('true' as const) : undefined,
  };
  return (
    <div class="field">
      <label for={id}>
        {spec.label}
        {!spec.required && !spec.options && <span class="soft"> (optional)</span>}
      </label>
      {spec.options ? (
        <select {...shared} onChange={(event) => onChange(event.currentTarget.value)}>
          {spec.options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : (
        <input
          {...shared}
          type="text"
          autoComplete="off"
          autoCapitalize="off"
          spellcheck={false}
          placeholder={spec.placeholder}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
      {spec.quick && (
        <div class="quick">
          {spec.quick.map((text) => (
            <button type="button" key={text} aria-label={`${spec.label}: ${text}`} onClick={() => onChange(text)}>
              {text}
            </button>
          ))}
        </div>
      )}
      {error && (
        <span class="error" id={`${id}-error`}>
          <Icon name="alert" />
          {error}
        </span>
      )}
      {spec.hint && (
        <span class="hint" id={`${id}-hint`}>
          {spec.hint}
        </span>
      )}
    </div>
  );
}
