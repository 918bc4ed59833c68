import type { Changed, KeyChanged, LimitState } from '../../api.js';
import { post } from './client.js';
import { moment, whole } from './format.js';
import { loadSession, session } from './session.js';
import { say } from './store.js';

const UNDONE = { reason: 'Undone at once' } as const;

/** Says what a change of a rate, a mode or a list has done, from what to what, and offers to undo it. */
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

/** Says what a change of a key has done to its state, and offers to undo it where that can be done. */
export function sayKeyChanged(
  who: string,
  whom: { readonly identity: string } | { readonly id: string },
  action: string,
  { state, before, version, warning }: KeyChanged,
  onChanged: (state: LimitState) => void = () => undefined,
  { units }: { readonly units?: unknown } = {},
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

/** What undoes a change of a key. What a reset or an unblock ended is not kept. */
const INVERSES: Readonly<Record<string, { path: string; isValid: (before: LimitState) => boolean }>> = {
  // A block that was there before would end, too.
  block: { path: 'unblock', isValid: ({ blockedUntil }) => blockedUntil === null },
  // Whoever may change anything gets back the rate that was there before.
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

/** The state of a limit for a key, in short. */
function textOf({ rate, blockedUntil, used, quota }: LimitState): string {
  if (blockedUntil !== null) return `blocked until ${moment(blockedUntil)}`;
  return used === null ? rate : `${rate}, ${whole(used)} of ${whole(quota)} used`;
}
