import { legible } from '../../../engine/util/legible.js';
import type { ComponentChildren } from 'preact';
import type { KeyChanged, LimitInfo, LimitState, RateInfo } from '../../api.js';
import { sayKeyChanged } from '../data/changed.js';
import { post } from '../data/client.js';
import type { Action, Offered } from '../parts/dialog.js';
import type { FieldSpec } from '../parts/field.js';
import { numberOf, patchFields, patchOf } from './patch-fields.js';

interface Context {
  readonly state: LimitState;
  readonly info: LimitInfo | undefined;
  /** Its rate, if it can be changed. */
  readonly rate: RateInfo | undefined;
  readonly identity: string;
  readonly blocked: boolean;
  /** Whether the user may do what has no end. */
  readonly canWrite: boolean;
  onChanged: (state: LimitState) => void;
}

export const DURATION: FieldSpec = {
  name: 'duration',
  label: 'For how long',
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
  hint: 'Such as 90s, 15m, 2h or 7d. Empty: until it is cleared.',
};

/** When a change ends: those who may act, but not change everything, have to say so. */
export function expiry(canWrite: boolean): FieldSpec {
  return canWrite ? EXPIRY : { ...EXPIRY, value: '1h', required: true, hint: 'Such as 90s, 15m, 2h or 7d.' };
}

/** The actions on a limit for an identity, each with its dialog. */
export function keyActions(context: Context): Offered[] {
  const { state, info, rate, blocked, canWrite } = context;
  const isOwn = state.rateSource === 'key';
  const mayEnd = canWrite || !isOwn || state.override?.expiresAt !== null;
  const offered: (Offered | false)[] = [
    {
      name: 'block',
      label: blocked ? 'Block anew' : 'Block',
      danger: true,
      action: action(context, 'block', {
        title: 'Block',
        intro: ' is refused by this limit until the time is over or somebody unblocks it.',
        fields: [DURATION],
        danger: true,
      }),
    },
    blocked && {
      name: 'unblock',
      label: 'Unblock',
      action: action(context, 'unblock', {
        title: 'Unblock',
        intro: ' is counted again as before the block.',
        gone: true,
      }),
    },
    {
      name: 'reset',
      label: 'Reset',
      action: action(context, 'reset', {
        title: 'Reset',
        intro: ' has all of its quota again. A block ends, too.',
      }),
    },
    !info?.leases && {
      name: 'refund',
      label: 'Refund',
      action: action(context, 'refund', {
        title: 'Refund',
        intro: ' gets units back, as if they had not been counted.',
        fields: [unitsField(state)],
      }),
    },
    !info?.leases && {
      name: 'penalize',
      label: 'Penalize',
      danger: true,
      action: action(context, 'penalize', {
        title: 'Penalize',
        intro: ' is charged units, also beyond its quota.',
        fields: [unitsField(state)],
        danger: true,
      }),
    },
    rate !== undefined &&
      mayEnd && {
        name: 'override',
        label: isOwn ? 'Change its rate' : 'Give it a rate of its own',
        action: action(context, 'override', {
          title: 'A rate of its own',
          intro: ' is counted by this rate instead of that of the limit. What is left empty stays as it is.',
          fields: [...patchFields(rate.patchable, rate.current.options), expiry(canWrite)],
        }),
      },
    isOwn &&
      mayEnd && {
        name: 'clear',
        label: 'Clear its rate',
        action: action(context, 'clear-override', {
          title: 'Clear its rate',
          intro: ' is counted by the rate of the limit again.',
          gone: true,
        }),
      },
  ];
  return offered.filter((one) => one !== false);
}

function unitsField({ quota }: LimitState): FieldSpec {
  return { name: 'units', label: 'Units', value: '1', required: true, hint: `A whole number; the quota is ${quota}.` };
}

interface Described {
  readonly title: string;
  /** The text after the identity. */
  readonly intro: string;
  readonly fields?: readonly FieldSpec[];
  readonly danger?: boolean;
  readonly gone?: boolean;
}

function action({ state, identity, onChanged }: Context, path: string, described: Described): Action {
  const intro: ComponentChildren = (
    <>
      <strong>{legible(identity)}</strong>
      {described.intro} The limit is <strong>{state.limit}</strong>.
    </>
  );
  return {
    title: described.title,
    intro,
    fields: described.fields ?? [],
    confirm: described.title === 'A rate of its own' ? 'Set the rate' : described.title,
    ...(described.danger && { danger: true }),
    ...(described.gone && { gone: true }),
    async run({ reason, ...values }) {
      const body = { limit: state.limit, identity, reason, ...bodyOf(values) };
      const answer = await post<KeyChanged>(`api/keys/${path}`, body);
      onChanged(answer.state);
      sayKeyChanged(legible(identity), { identity }, path, answer, onChanged, {
        units: numberOf(values['units'] ?? ''),
      });
    },
  };
}

/** Collects members `patch.x` in one object; empty ones are left out. */
function bodyOf(values: Readonly<Record<string, string>>): object {
  const patch = patchOf(values);
  const rest = Object.entries(values)
    .filter(([name, text]) => !name.startsWith('patch.') && text.trim() !== '')
    .map(([name, text]) => [name, name === 'units' ? numberOf(text) : text.trim()]);
  return { ...Object.fromEntries(rest), ...(patch && { patch }) };
}
