import type { Changed, KeyChanged, LimitState } from '../../api.js';
import { post } from './client.js';
import { moment, whole } from './format.js';
import { loadSession, session } from './session.js';
import { say } from './store.js';

const UNDONE = { reason: 'Undone at once' } as const;

/** Announces a change of a rate, a mode or a list with its old and new value, and offers to undo it. */
export function sayChanged(
  what: string,
  { changed, before, after, version, warning }: Changed,
  onUndone: () => void = () => undefined,
): void {
  if (!changed) say(`${what} is already like this; nothing was changed.`);
  else {
    const values = before === undefined || after === undefined ? '' : `: ${before} → ${after}`;
    say(
      `${what}${values}`,
      'done',
      version === undefined || !session.value.canWrite ? undefined : () => undone(what, version, onUndone),
    );
  }
  if (warning !== undefined) say(warning, 'warning');
}

/** Announces a change of a key with its effect, and offers to undo it if possible. */
export function sayKeyChanged(
  who: string,
  whom: { readonly identity: string } | { readonly id: string },
  action: string,
  { state, before, version, warning }: KeyChanged,
  onChanged: (state: LimitState) => void,
  units: unknown,
): void {
  const inverse = INVERSES[action];
  const undo =
    version !== undefined && session.value.canWrite
      ? () => undone(who, version, () => undefined)
      : inverse && (before === undefined || inverse.isValid(before))
        ? async () => {
            const answer = await post<KeyChanged>(`api/keys/${inverse.path}`, {
              limit: state.limit,
              ...whom,
              ...(typeof units === 'number' && { units }),
              ...UNDONE,
            });
            onChanged(answer.state);
            say(`${who} in ${state.limit}: ${textOf(answer.state)}`);
          }
        : undefined;
  const values = before === undefined ? textOf(state) : `${textOf(before)} → ${textOf(state)}`;
  say(`${who} in ${state.limit}: ${values}`, 'done', undo);
  if (warning !== undefined) say(warning, 'warning');
}

/** The changes that undo a change of a key. A reset or an unblock can't be undone, since the earlier state isn't kept. */
const INVERSES: Readonly<Record<string, { path: string; isValid: (before: LimitState) => boolean }>> = {
  // This would also end an earlier block.
  block: { path: 'unblock', isValid: ({ blockedUntil }) => blockedUntil === null },
  // Users who may change everything get the earlier rate restored.
  override: { path: 'clear-override', isValid: ({ rateSource }) => rateSource !== 'key' },
  refund: { path: 'penalize', isValid: () => true },
  penalize: { path: 'refund', isValid: () => true },
};

async function undone(what: string, version: number, onUndone: () => void): Promise<void> {
  const { changed } = await post<Changed>('api/undo', { version, ...UNDONE });
  onUndone();
  void loadSession();
  say(changed ? `${what} is as it was before.` : 'There was nothing to undo.');
}

/** A short description of a limit's state for a key. */
function textOf({ rate, blockedUntil, used, quota }: LimitState): string {
  if (blockedUntil !== null) return `blocked until ${moment(blockedUntil)}`;
  return used === null ? rate : `${rate}, ${whole(used)} of ${whole(quota)} used`;
}
