import type { Changed, Deviation } from '../../api.js';
import { sayChanged } from '../data/changed.js';
import { post } from '../data/client.js';
import { loadSession } from '../data/session.js';
import { identityOf } from '../data/store.js';
import type { Action } from '../parts/dialog.js';
import { keyAction } from './key-actions.js';

/** The action that ends a deviation; `undefined` if it can't be ended here. */
export function ending(entry: Deviation, onChanged: () => void): Action | undefined {
  const { key, limit, id } = entry;
  const name = key === null ? 'Everybody' : (identityOf(id) ?? key);
  const act = (path: string, title: string, intro: string): Action => ({
    title,
    intro: (
      <>
        <strong>{name}</strong> {intro}
      </>
    ),
    fields: [],
    confirm: title,
    gone: true,
    async run({ reason }) {
      const of = entry.kind === 'overrides' ? { of: entry.of, limit } : {};
      const answer = await post<Changed>(`api/${path}`, { id, reason, ...of });
      sayChanged(`${title}: ${name}`, answer, onChanged);
      void loadSession();
      onChanged();
    },
  });
  const actOnKey = (path: string, title: string, intro: string): Action =>
    keyAction({ limit: limit!, name, whom: { id } }, path, { title, intro, gone: true }, onChanged);
  const of = limit === null ? '' : ` The limit is ${limit}.`;
  switch (entry.kind) {
    case 'blocks':
      return actOnKey('unblock', 'Unblock', `is counted again as before the block.${of}`);
    case 'leases':
      return actOnKey(
        'reset',
        'Release',
        `no longer holds units and has its whole quota again. Running work goes on, so more may run than the limit allows.${of}`,
      );
    case 'overrides':
      return act('deviations/clear', 'Clear', `is counted without this ${entry.of} again.${of}`);
    default:
      return entry.item.removable
        ? act('lists/remove', 'Take off', `is counted like everybody else again.${of}`)
        : undefined;
  }
}
