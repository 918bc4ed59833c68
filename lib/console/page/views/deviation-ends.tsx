import type { Changed, Deviation, KeyChanged } from '../../api.js';
import { sayChanged, sayKeyChanged } from '../data/changed.js';
import { post } from '../data/client.js';
import { loadSession } from '../data/session.js';
import { identityOf } from '../data/store.js';
import type { Action } from '../parts/dialog.js';

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
      if (path.startsWith('keys/')) {
        const answer = await post<KeyChanged>(`api/${path}`, { limit, id, reason });
        sayKeyChanged(name, { id }, path.slice('keys/'.length), answer, onChanged);
      } else {
        const of = entry.kind === 'overrides' ? { of: entry.of, limit } : {};
        const answer = await post<Changed>(`api/${path}`, { id, reason, ...of });
        sayChanged(`${title}: ${name}`, answer, onChanged);
        void loadSession();
      }
      onChanged();
    },
  });
  const of = limit === null ? '' : ` The limit is ${limit}.`;
  switch (entry.kind) {
    case 'blocks':
      return act('keys/unblock', 'Unblock', `is counted again as before the block.${of}`);
    case 'leases':
      return act(
        'keys/reset',
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
