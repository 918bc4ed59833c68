import { legible } from '../../../engine/util/figures.js';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { LimitInfo, Rates, TopKey } from '../../api.js';
import { get } from '../data/client.js';
import { hrefOf } from '../data/route.js';
import { session } from '../data/session.js';
import { identityOf, sayFailed, subject } from '../data/store.js';
import type { Action } from '../parts/dialog.js';
import type { FieldSpec } from '../parts/field.js';
import { DURATION, expiry, keyAction, type KeyOfLimit } from './key-actions.js';
import { patchFields } from './patch-fields.js';
import { rateAction } from './rate-actions.js';

/** The default duration of quick actions. */
const RAISED_FOR = '10m';
const RAISED_BY = 2;
/** The options where a larger value allows more. */
const RAISED = ['rate', 'limit'];

/** The key to block or to raise: a counted key, or its hash if its identity isn't displayed. */
type Who = Pick<TopKey, 'id' | 'identity'>;

/** The buttons with quick actions for a key. */
export function KeyButtons({
  limit,
  who,
  reason,
  onAct,
}: {
  limit: LimitInfo;
  who: Who;
  /** The reason for the log, which the user can edit. */
  reason: string;
  onAct: (action: Action) => void;
}): JSX.Element | null {
  const { id, identity = identityOf(id) } = who;
  const name = legible(identity ?? id);
  const key = { limit: limit.name, name, whom: identity === undefined ? { id } : { identity } };
  if (!limit.addressable) return null;
  return (
    <span class="buttons" role="group" aria-label={`Act on ${name} in ${limit.name}`}>
      <button type="button" class="button small danger" onClick={() => onAct(blocking(key, reason))}>
        Block
      </button>
      {limit.changeable && <RaiseButton limit={limit} onReady={(fields) => onAct(raising(key, reason, fields))} />}
    </span>
  );
}

/** The button that raises the rate of a limit for all keys temporarily. */
export function RaiseLimit({
  limit,
  reason,
  onAct,
}: {
  limit: LimitInfo;
  reason: string;
  onAct: (action: Action) => void;
}): JSX.Element {
  return (
    <RaiseButton
      limit={limit}
      label="Raise for all"
      onReady={(fields) => onAct(raisingAll(limit.name, reason, fields))}
    />
  );
}

/** The name of a key: a link to its lookup if its identity is known, otherwise its hash. */
export function Who({ of }: { of: Who }): JSX.Element {
  const identity = of.identity ?? identityOf(of.id);
  if (identity === undefined) return <span class="who mono">{of.id}</span>;
  return (
    <a class="who" href={hrefOf('lookup')} onClick={() => (subject.value = { identity })}>
      {legible(identity)}
    </a>
  );
}

function RaiseButton({
  limit,
  label = 'Raise',
  onReady,
}: {
  limit: LimitInfo;
  label?: string;
  onReady: (fields: FieldSpec[]) => void;
}): JSX.Element {
  const [busy, setBusy] = useState(false);
  const open = async (): Promise<void> => {
    if (busy) return;
    setBusy(true);
    try {
      onReady(await raisedFields(limit.name));
    } catch (error) {
      sayFailed(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" class="button small" aria-disabled={busy} onClick={() => void open()}>
      {label}
    </button>
  );
}

/** The fields of a higher rate: twice the current one, for ten minutes. */
async function raisedFields(limit: string): Promise<FieldSpec[]> {
  const { rates } = await get<Rates>(`api/rates?limit=${encodeURIComponent(limit)}`);
  const rate = rates[0];
  if (rate === undefined) throw new Error(`The rate of ${limit} cannot be changed while the app runs.`);
  const options = rate.current.options as unknown as Readonly<Record<string, unknown>>;
  const fields = patchFields(
    rate.patchable.filter((name) => RAISED.includes(name)),
    options,
  );
  const raised = fields.map((field): FieldSpec => {
    const now = options[field.name.slice('patch.'.length)];
    return typeof now === 'number' ? { ...field, value: String(RAISED_BY * now), hint: `It is ${now} now.` } : field;
  });
  return [...raised, { ...expiry(session.value.canWrite), value: RAISED_FOR }];
}

function blocking(key: KeyOfLimit, reason: string): Action {
  const intro = (
    <>
      is refused by <strong>{key.limit}</strong> until the time is over or somebody unblocks it.
    </>
  );
  return keyAction(key, 'block', { title: 'Block', intro, fields: [DURATION], danger: true, reason });
}

function raising(key: KeyOfLimit, reason: string, fields: FieldSpec[]): Action {
  const intro = (
    <>
      is counted by this rate instead of that of <strong>{key.limit}</strong>.
    </>
  );
  return keyAction(key, 'override', { title: 'Higher rate for a while', intro, fields, confirm: 'Raise', reason });
}

function raisingAll(limit: string, reason: string, fields: FieldSpec[]): Action {
  const title = 'Higher rate for all keys for a while';
  const intro = 'Each key is counted by this rate instead of the current one.';
  return rateAction(limit, { path: 'rates/set', title, intro, fields, confirm: 'Raise', reason });
}
