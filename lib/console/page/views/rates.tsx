import type { JSX } from 'preact';
import type { RateInfo, Rates } from '../../api.js';
import { plural } from '../data/format.js';
import { useResource } from '../data/client.js';
import { hrefOf, useParam } from '../data/route.js';
import type { ViewProps } from '../data/session.js';
import { useDialog } from '../parts/dialog.js';
import { Find, matches, Pager, usePaged } from '../parts/paged.js';
import { Empty, labelsOf, Note, Select, ViewHead, Waiting } from '../parts/small.js';
import { RateCard } from './rate-card.js';

const PAGE = window.matchMedia('(max-width: 56rem)').matches ? 3 : 6;

const SHOWN = {
  all: { label: 'all', has: () => true },
  changed: {
    label: 'that were changed',
    has: ({ current, mode }: RateInfo) => current.source !== 'configured' || mode.source !== 'configured',
  },
  candidate: { label: 'with a candidate', has: ({ candidate }: RateInfo) => candidate !== null },
  unenforced: { label: 'in shadow or off', has: ({ mode }: RateInfo) => mode.mode !== 'enforce' },
} as const;
type Shown = keyof typeof SHOWN;

/** The limits whose rate and mode can be changed, with their current values and the effect of their candidates. */
export function RatesView({ limit }: ViewProps): JSX.Element {
  const { data, error, reload } = useResource<Rates>('api/rates', 10_000);
  const [dialog, openDialog] = useDialog();
  const [find] = useParam('find', '');
  const [show, setShow] = useParam<Shown>('show', 'all', Object.keys(SHOWN) as Shown[]);
  const found = (data?.rates ?? []).filter(
    (rate) =>
      (limit === undefined || rate.limit === limit) &&
      matches(`${rate.limit} ${rate.current.rate}`, find) &&
      SHOWN[show].has(rate),
  );
  const paged = usePaged(found, PAGE);

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
        Changes take effect on all instances within a second, without a deployment. Try a rate as a candidate first: it
        is also counted, but rejects nobody. Limits of routes without a defined name are not listed.
      </ViewHead>
      {data?.problem !== undefined && <Note danger>{data.problem}</Note>}
      {data === undefined ? (
        <Waiting error={error} what="rates" onRetry={reload} />
      ) : data.rates.length === 0 ? (
        <div class="panel">
          <Empty icon="rates" title="No rate can be changed">
            You can change the rates of named limits while the app runs: set the option name of a limit, or define it
            under a name in the module's option define.
          </Empty>
        </div>
      ) : (
        <>
          {limit === undefined ? (
            <div class="toolbar">
              <Find what="rates" found={found.length} />
              <Select label="Show" value={show} onChoose={setShow} options={labelsOf(SHOWN)} />
            </div>
          ) : (
            <p>
              <a href={hrefOf('rates')}>All rates</a>
            </p>
          )}
          {found.length === 0 && (
            <div class="panel">
              <Empty icon="rates" title="No rate is like that">
                Of {plural(data.rates.length, 'limit')}, none matches your search.
              </Empty>
            </div>
          )}
          <div class="states">
            {paged.shown.map((rate) => (
              <RateCard
                key={rate.limit}
                id={`rate-${encodeURIComponent(rate.limit)}`}
                rate={rate}
                onAct={openDialog}
                onChanged={reload}
              />
            ))}
          </div>
          <Pager of={paged} what="rates" />
        </>
      )}
      {dialog}
    </>
  );
}
