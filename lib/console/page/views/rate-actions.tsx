import type { Changed, RateInfo } from '../../api.js';
import { post } from '../data/client.js';
import { percent, plural, whole } from '../data/format.js';
import { sayChanged } from '../data/changed.js';
import type { Action, Offered } from '../parts/dialog.js';
import type { FieldSpec } from '../parts/field.js';
import { EXPIRY } from './key-actions.js';
import { fullRate, patchFields, patchOf } from './patch-fields.js';

interface Described {
  readonly path: string;
  readonly title: string;
  readonly intro: string;
  readonly fields?: readonly FieldSpec[];
  readonly confirm: string;
  readonly gone?: boolean;
}

/** The changes that a limit allows, each with its dialog. */
export function rateActions(rate: RateInfo, onChanged: () => void): Offered[] {
  const { current, mode, candidate, patchable } = rate;
  const offer = (label: string, described: Described): Offered => ({
    label,
    action: actionOf(rate.limit, described, onChanged),
  });
  const fields = patchFields(patchable, current.options);
  const modes: FieldSpec = {
    name: 'mode',
    label: 'Mode',
    value: mode.mode,
    options: [
      { value: 'enforce', label: 'enforce: it refuses' },
      { value: 'shadow', label: 'shadow: it counts, and refuses nobody' },
      { value: 'off', label: 'off: it neither counts nor refuses' },
    ],
  };
  const offered: (Offered | false)[] = [
    candidate !== null && { ...offer(`Enforce ${candidate.rate}`, enforcing(rate)), main: true },
    offer('Change the rate', {
      path: 'rates/set',
      title: 'Change the rate',
      intro: `It is ${fullRate(current.rate, current.options)} now. What is left empty stays as it is. Whoever has used something keeps the share that is left.`,
      fields: [...fields, EXPIRY],
      confirm: 'Change the rate',
    }),
    current.override !== undefined &&
      offer('Clear the change', {
        path: 'rates/clear',
        title: 'Clear the change',
        intro: `The rate is as configured again: ${rate.configured.rate}.`,
        confirm: 'Clear the change',
        gone: true,
      }),
    offer('Change the mode', {
      path: 'modes/set',
      title: 'Change the mode',
      intro: `It is ${mode.mode} now.`,
      fields: [modes, EXPIRY],
      confirm: 'Change the mode',
    }),
    mode.override !== undefined &&
      offer('Clear the mode', {
        path: 'modes/clear',
        title: 'Clear the mode',
        intro: `The mode is as configured again: ${rate.configured.mode}.`,
        confirm: 'Clear the mode',
        gone: true,
      }),
    offer(candidate === null ? 'Preview a rate' : 'Preview another rate', {
      path: 'candidates/set',
      title: 'Preview a rate',
      intro:
        'It is counted beside the limit from now on, and refuses nobody. This page shows what it would have refused.',
      fields,
      confirm: 'Preview',
    }),
    candidate !== null &&
      offer('Drop the candidate', {
        path: 'candidates/clear',
        title: 'Drop the candidate',
        intro: `${candidate.rate} is not counted any more.`,
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
      `It takes the place of ${current.rate}. ` +
      (candidateAsked === 0
        ? 'In the last hour it has decided nothing, so what it would refuse is unknown.'
        : `In the last hour it would have refused ${whole(candidateRefused)} of the ${plural(candidateAsked, 'decision')} ` +
          `that it was asked for (${percent(candidateRefused, candidateAsked)}).`),
    confirm: 'Enforce',
    gone: true,
  };
}

function actionOf(limit: string, described: Described, onChanged: () => void): Action {
  return {
    title: described.title,
    intro: (
      <>
        <strong>{limit}</strong>. {described.intro}
      </>
    ),
    fields: described.fields ?? [],
    confirm: described.confirm,
    ...(described.gone && { gone: true }),
    async run({ reason, mode, expiresIn, ...values }) {
      const patch = patchOf(values);
      const answer = await post<Changed>(`api/${described.path}`, {
        limit,
        reason,
        ...(mode !== undefined && { mode }),
        ...(patch && { patch }),
        ...(expiresIn?.trim() && { expiresIn: expiresIn.trim() }),
      });
      onChanged();
      sayChanged(limit, answer, onChanged);
    },
  };
}
