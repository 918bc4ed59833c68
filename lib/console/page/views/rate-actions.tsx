import type { Changed, RateInfo } from '../../api.js';
import { post } from '../data/client.js';
import { percent, plural, whole } from '../data/format.js';
import { sayChanged } from '../data/changed.js';
import { loadSession } from '../data/session.js';
import type { Action, Offered } from '../parts/dialog.js';
import type { FieldSpec } from '../parts/field.js';
import { EXPIRY } from './key-actions.js';
import { filled, fullRate, patchFields, patchOf } from './patch-fields.js';

interface Described extends Pick<Partial<Action>, 'fields' | 'confirm' | 'gone' | 'reason'> {
  readonly path: string;
  readonly title: string;
  /** The effect of the change, in sentences that follow the name of the limit. */
  readonly intro: string;
}

/** The changes that a limit allows, each with its dialog. */
export function rateActions(rate: RateInfo, onChanged: () => void): Offered[] {
  const { current, mode, candidate, patchable } = rate;
  const offer = (label: string, described: Described): Offered => ({
    label,
    action: rateAction(rate.limit, described, onChanged),
  });
  const fields = patchFields(patchable, current.options);
  const modes: FieldSpec = {
    name: 'mode',
    label: 'Mode',
    value: mode.mode,
    options: [
      { value: 'enforce', label: 'enforce: refuses requests' },
      { value: 'shadow', label: 'shadow: counts, but refuses nothing' },
      { value: 'off', label: 'off: neither counts nor refuses' },
    ],
  };
  const offered: (Offered | false)[] = [
    candidate !== null && { ...offer(`Enforce ${candidate.rate}`, enforcing(rate)), main: true },
    offer('Change the rate', {
      path: 'rates/set',
      title: 'Change the rate',
      intro: `Now: ${fullRate(current.rate, current.options)}. Empty fields keep their value. Keys that have used units keep the same share of their quota.`,
      fields: [...fields, EXPIRY],
    }),
    current.override !== undefined &&
      offer('Clear the change', {
        path: 'rates/clear',
        title: 'Clear the change',
        intro: `The configured rate applies again: ${rate.configured.rate}.`,
        gone: true,
      }),
    offer('Change the mode', {
      path: 'modes/set',
      title: 'Change the mode',
      intro: `It is ${mode.mode} now.`,
      fields: [modes, EXPIRY],
    }),
    mode.override !== undefined &&
      offer('Clear the mode', {
        path: 'modes/clear',
        title: 'Clear the mode',
        intro: `The configured mode applies again: ${rate.configured.mode}.`,
        gone: true,
      }),
    offer(candidate === null ? 'Preview a rate' : 'Preview another rate', {
      path: 'candidates/set',
      title: 'Preview a rate',
      intro: 'It is counted in addition to the limit and rejects nothing. This page shows what it would have rejected.',
      fields,
      confirm: 'Preview',
    }),
    candidate !== null &&
      offer('Drop the candidate', {
        path: 'candidates/clear',
        title: 'Drop the candidate',
        intro: `${candidate.rate} no longer counts.`,
        confirm: 'Drop it',
        gone: true,
      }),
  ];
  return offered.filter((one) => one !== false);
}

function enforcing({ candidate, current }: RateInfo): Described {
  const { candidateAsked, candidateRefused } = candidate!.lastHour;
  return {
    path: 'candidates/enforce',
    title: `Enforce ${candidate!.rate}`,
    intro:
      `It replaces ${current.rate}. ` +
      (candidateAsked === 0
        ? 'It made no decision in the last hour, so it is unknown what it would refuse.'
        : `In the last hour it would have refused ${whole(candidateRefused)} of the ${plural(candidateAsked, 'decision')} ` +
          `that it made (${percent(candidateRefused, candidateAsked)}).`),
    confirm: 'Enforce',
    gone: true,
  };
}

/** The dialog of a change to a limit's rate, mode or candidate. */
export function rateAction(limit: string, described: Described, onChanged?: () => void): Action {
  return {
    fields: [],
    confirm: described.title,
    ...described,
    intro: (
      <>
        <strong>{limit}</strong>. {described.intro}
      </>
    ),
    async run({ reason, mode, expiresIn, ...values }) {
      const body = { limit, reason, mode, patch: patchOf(values), expiresIn: filled(expiresIn) };
      const answer = await post<Changed>(`api/${described.path}`, body);
      onChanged?.();
      void loadSession();
      sayChanged(limit, answer, onChanged);
    },
  };
}
