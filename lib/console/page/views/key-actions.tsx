import type { ComponentChildren } from 'preact';
import { legible } from '../../../engine/util/figures.js';
import type { KeyChanged, LimitInfo, LimitState, RateInfo } from '../../api.js';
import { sayKeyChanged } from '../data/changed.js';
import { post } from '../data/client.js';
import type { Action, Offered } from '../parts/dialog.js';
import type { FieldSpec } from '../parts/field.js';
import { numberOf, patchFields, patchOf } from './patch-fields.js';

/** A limit and the identity to act on. */
export interface Context {
  readonly state: LimitState;
  readonly info: LimitInfo | undefined;
  /** Its rate, if it can be changed. */
  readonly rate: RateInfo | undefined;
  readonly identity: string;
  readonly blocked: boolean;
  /** True if the user may make changes without an end. */
  readonly canWrite: boolean;
  onChanged: (state: LimitState) => void;
}

export const DURATION: FieldSpec = {
  name: 'duration',
  label: 'Duration',
  value: '15m',
  required: true,
  quick: ['5m', '15m', '1h', '1d', '7d'],
  hint: 'Such as 90s, 15m, 2h or 7d.',
};

export const EXPIRY: FieldSpec = {
  name: 'expiresIn',
  label: 'Ends after',
  placeholder: 'never',
  quick: ['1h', '1d', '7d'],
  hint: 'Such as 90s, 15m, 2h or 7d. Empty: until you clear it.',
};

/** The field for the end of a change. It is required for users who may only act on keys. */
export function expiry(canWrite: boolean): FieldSpec {
  return canWrite ? EXPIRY : { ...EXPIRY, value: '1h', required: true, hint: 'Such as 90s, 15m, 2h or 7d.' };
}

/** The actions on a limit for an identity, each with its dialog. */
export function keyActions({ state, info, rate, identity, blocked, canWrite, onChanged }: Context): Offered[] {
  const key = { limit: state.limit, name: legible(identity), whom: { identity } };
  const isOwn = state.rateSource === 'key';
  const mayEnd = canWrite || !isOwn || state.override?.expiresAt !== null;
  const offer = (path: string, described: Described & { readonly label?: string }): Offered => {
    const intro = (
      <>
        {described.intro} The limit is <strong>{state.limit}</strong>.
      </>
    );
    const { title, label = title, danger } = described;
    return { name: path, label, danger, action: keyAction(key, path, { ...described, intro }, onChanged) };
  };
  const offered: (Offered | false)[] = [
    offer('block', {
      label: blocked ? 'Block again' : 'Block',
      title: 'Block',
      intro: 'is rejected by this limit until the time is over or you unblock it.',
      fields: [DURATION],
      danger: true,
    }),
    blocked && offer('unblock', { title: 'Unblock', intro: 'is limited again as before the block.', gone: true }),
    offer('reset', { title: 'Reset', intro: 'gets its whole quota back. A block also ends.' }),
    !info?.leases && offer('refund', { title: 'Refund', intro: 'gets these units back.', fields: [unitsField(state)] }),
    !info?.leases &&
      offer('penalize', {
        title: 'Penalize',
        intro: 'is charged these units, even beyond its quota.',
        fields: [unitsField(state)],
        danger: true,
      }),
    rate !== undefined &&
      mayEnd &&
      offer('override', {
        label: isOwn ? 'Change the rate of this key' : 'Set a rate for this key',
        title: 'Rate of this key',
        intro: "has this rate instead of the limit's. Empty fields keep the limit's value.",
        fields: [...patchFields(rate.patchable, rate.current.options), expiry(canWrite)],
        confirm: 'Set the rate',
      }),
    isOwn &&
      mayEnd &&
      offer('clear-override', {
        title: 'Clear the rate of this key',
        intro: "has the limit's rate again.",
        gone: true,
      }),
  ];
  return offered.filter((one) => one !== false);
}

function unitsField({ quota }: LimitState): FieldSpec {
  return { name: 'units', label: 'Units', value: '1', required: true, hint: `A whole number; the quota is ${quota}.` };
}

interface Described extends Pick<Partial<Action>, 'fields' | 'danger' | 'gone' | 'confirm' | 'reason'> {
  readonly title: string;
  /** The text after the name of the key. */
  readonly intro: ComponentChildren;
}

/** A key of a limit: its name in texts, and its identity or hash in requests. */
export interface KeyOfLimit {
  readonly limit: string;
  readonly name: string;
  readonly whom: { readonly identity: string } | { readonly id: string };
}

/** The dialog of a change to a key: `POST api/keys/<path>`. */
export function keyAction(
  { limit, name, whom }: KeyOfLimit,
  path: string,
  described: Described,
  onChanged: (state: LimitState) => void = () => undefined,
): Action {
  return {
    fields: [],
    confirm: described.title,
    ...described,
    intro: (
      <>
        <strong>{name}</strong> {described.intro}
      </>
    ),
    async run({ reason, ...values }) {
      const body = bodyOf(values);
      const answer = await post<KeyChanged>(`api/keys/${path}`, { limit, ...whom, reason, ...body });
      onChanged(answer.state);
      sayKeyChanged(name, whom, path, answer, onChanged, body['units']);
    },
  };
}

/** Collects fields named `patch.x` in one object, without empty ones. */
function bodyOf(values: Readonly<Record<string, string>>): Record<string, unknown> {
  const patch = patchOf(values);
  const rest = Object.entries(values)
    .filter(([name, text]) => !name.startsWith('patch.') && text.trim() !== '')
    .map(([name, text]) => [name, name === 'units' ? numberOf(text) : text.trim()]);
  return { ...Object.fromEntries(rest), ...(patch && { patch }) };
}
