import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Rates } from '../../api.js';
import { useResource } from '../data/resource.js';
import { hrefOf } from '../data/route.js';
import { loadSession, session } from '../data/session.js';
import { useStore } from '../data/store.js';
import { type Action, ActionDialog } from '../parts/dialog.js';
import { Empty, Note, ViewHead, Waiting } from '../parts/small.js';
import { RateCard } from './rate-card.js';
import type { ViewProps } from './view.js';

/** The limits whose rate and mode can be changed, their current values, and what candidates would do. */
export function RatesView({ limit }: ViewProps): JSX.Element {
  const { data, error, reload } = useResource<Rates>('api/rates', 10_000);
  const { canWrite } = useStore(session);
  const [action, setAction] = useState<Action>();
  const loaded = data !== undefined;

  // Scrolls to the limit that the address names.
  useEffect(() => {
    if (loaded && limit !== undefined) document.getElementById(cardId(limit))?.scrollIntoView();
  }, [loaded, limit]);

  const changed = (): void => {
    reload();
    void loadSession();
  };

  return (
    <>
      <ViewHead
        title="Rates and modes"
        aside={
          <a class="button" href={hrefOf('changes')}>
            Changes, and rolling back
          </a>
        }
      >
        Changes hold for all instances within a second, and no deployment is needed. Try a rate as a candidate first: it
        is counted beside the limit and refuses nobody. Limits of routes that were not defined by a name are not here.
      </ViewHead>
      {data?.problem !== undefined && <Note danger>{data.problem}</Note>}
      {data === undefined ? (
        <Waiting error={error} what="rates" onRetry={reload} />
      ) : data.rates.length === 0 ? (
        <div class="panel">
          <Empty icon="rates" title="No rate can be changed">
            Rates of limits that have a name can be changed while the app runs: give a limit the option name, or define
            it by a name in the module's option define.
          </Empty>
        </div>
      ) : (
        <div class="states">
          {data.rates.map((rate) => (
            <RateCard
              key={rate.limit}
              id={cardId(rate.limit)}
              rate={rate}
              canWrite={canWrite}
              onAct={setAction}
              onChanged={changed}
            />
          ))}
        </div>
      )}
      {action && <ActionDialog action={action} onClose={() => setAction(undefined)} />}
    </>
  );
}

function cardId(limit: string): string {
  return `rate-${encodeURIComponent(limit)}`;
}
