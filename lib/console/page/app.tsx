import { render } from 'preact';
import { apply } from './data/theme.js';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { connection, useStore } from './data/store.js';
import { listen } from './data/live.js';
import { route } from './data/route.js';
import { loadSession, session } from './data/session.js';
import { zone } from './data/format.js';
import { Frame } from './parts/frame.js';
import { ViewHead, Waiting } from './parts/small.js';
import { ChangesView } from './views/changes.js';
import { DeviationsView } from './views/deviations.js';
import { LimitView } from './views/limit.js';
import { ListsView } from './views/lists.js';
import { LookupView } from './views/lookup.js';
import { OverviewView } from './views/overview.js';
import { RatesView } from './views/rates.js';

const VIEWS = {
  overview: { title: 'Overview', View: OverviewView },
  limit: { title: 'Limit', View: LimitView },
  lookup: { title: 'Look-up', View: LookupView },
  deviations: { title: 'Deviations', View: DeviationsView },
  rates: { title: 'Rates and modes', View: RatesView },
  lists: { title: 'Lists', View: ListsView },
  changes: { title: 'Changes', View: ChangesView },
} as const;

function App(): JSX.Element {
  const now = useStore(route);
  const { session: about, error } = useStore(session);
  const { epoch, state } = useStore(connection);
  const zoned = useStore(zone);
  const { title, View } = VIEWS[now.view];
  const first = useRef(true);
  const watched = now.view === 'limit' && about?.limits.some(({ name }) => name === now.limit) ? now.limit : undefined;

  useEffect(() => listen(watched), [watched]);
  // The session may have changed while the connection was lost.
  useEffect(() => void loadSession(), [epoch]);
  useEffect(() => {
    if (state === 'live' && !about) void loadSession();
  }, [state]);
  useEffect(() => {
    document.title = `${now.limit ?? title} – rate limits`;
    // Moves the focus to the heading of a new view, for keyboards and screen readers.
    if (!first.current) {
      window.scrollTo(0, 0);
      document.querySelector<HTMLElement>('main h1')?.focus();
    }
    first.current = false;
  }, [now.view, now.limit]);

  return (
    <Frame route={now}>
      {about ? (
        <View key={`${now.view} ${now.limit ?? ''} ${zoned}`} session={about} limit={now.limit} />
      ) : (
        <>
          <ViewHead title={title} />
          <Waiting error={error} what="console" onRetry={() => void loadSession()} />
        </>
      )}
    </Frame>
  );
}

apply();
render(<App />, document.getElementById('app')!);
