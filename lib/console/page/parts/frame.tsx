import type { ComponentChildren, JSX } from 'preact';
import { connection, dismiss, toasts, undo, useStore } from '../data/store.js';
import { moment, nameOfZone, OFFERED, zone } from '../data/format.js';
import { hrefOf, type Route, type View } from '../data/route.js';
import { session } from '../data/session.js';
import { theme } from '../data/theme.js';
import { Icon, type IconName, Logo } from './icons.js';
import { Badge, Choice, Select } from './small.js';
import { pause, resume } from '../data/live.js';

const STATES = {
  connecting: { tone: 'plain', text: 'Connecting' },
  live: { tone: 'good', text: 'Live' },
  paused: { tone: 'plain', text: 'Paused' },
  lost: { tone: 'danger', text: 'Not connected' },
  denied: { tone: 'danger', text: 'Signed out' },
} as const;

/** Displays if the numbers are live, and lets the user pause and resume them. */
export function LiveSwitch(): JSX.Element {
  const { state } = useStore(connection);
  const { tone, text } = STATES[state];
  const paused = state === 'paused';
  return (
    <>
      <span class="live-state">
        <Badge tone={tone}>
          <span class={state === 'live' ? 'dot beating' : 'dot'} />
          {text}
        </Badge>
      </span>
      <button type="button" class="button small" onClick={paused ? resume : pause}>
        <Icon name={paused ? 'play' : 'pause'} />
        {paused ? 'Resume' : 'Pause'}
      </button>
    </>
  );
}

const LINKS: readonly { view: View; label: string; icon: IconName }[] = [
  { view: 'overview', label: 'Overview', icon: 'overview' },
  { view: 'lookup', label: 'Look-up', icon: 'lookup' },
  { view: 'deviations', label: 'Deviations', icon: 'deviations' },
  { view: 'rates', label: 'Rates', icon: 'rates' },
  { view: 'lists', label: 'Lists', icon: 'lists' },
  { view: 'changes', label: 'Changes', icon: 'changes' },
];

const THEME_OPTIONS = [
  { value: 'system', label: 'Theme of the system', icon: 'system' },
  { value: 'light', label: 'Light theme', icon: 'sun' },
  { value: 'dark', label: 'Dark theme', icon: 'moon' },
] as const;

export function Frame({ route, children }: { route: Route; children: ComponentChildren }): JSX.Element {
  const { session: about, canAct, canWrite } = useStore(session);
  return (
    <div class="frame">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        Skip to the content
      </a>
      <header class="side">
        <div class="brand">
          <Logo />
          <div>
            <strong>Rate limits</strong>
            {about && <span>{about.storage === 'redis' ? `on Redis, prefix ${about.prefix}` : 'in process'}</span>}
          </div>
        </div>
        <nav class="views" aria-label="Views">
          {LINKS.map(({ view, label, icon }) => (
            <a
              key={view}
              href={hrefOf(view)}
              aria-current={view === route.view || (view === 'overview' && route.view === 'limit') ? 'page' : undefined}
            >
              <Icon name={icon} />
              {label}
            </a>
          ))}
        </nav>
        <div class="side-foot">
          <ThemeChoice />
          <ZoneChoice />
          {about && (
            <p class="about">
              {canWrite
                ? 'You can make changes.'
                : canAct
                  ? 'You can act on keys for a limited time.'
                  : 'You can view, but not change.'}
              {about.observedSince !== undefined && (
                <>
                  <br />
                  Runs without the app; its limits are those of {moment(about.observedSince)}.
                </>
              )}
              <br />
              nestjs-sluice {about.version}
            </p>
          )}
        </div>
      </header>
      <div class="content">
        <Banner />
        <main id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      <Toasts />
    </div>
  );
}

function ThemeChoice(): JSX.Element {
  return (
    <Choice
      name="theme"
      legend="Theme"
      value={useStore(theme)}
      options={THEME_OPTIONS}
      onChoose={(next) => (theme.value = next)}
    />
  );
}

/** The time zone of the page, and a control to change it. */
function ZoneChoice(): JSX.Element {
  const options = OFFERED.map((each) => [each, nameOfZone(each)] as const);
  return <Select label="Times in" value={useStore(zone)} options={options} onChoose={(next) => (zone.value = next)} />;
}

/** Reports that the app or its Redis doesn't respond, as long as it lasts. */
function Banner(): JSX.Element {
  const { state, problem, answers } = useStore(connection);
  const { error, session: about } = useStore(session);
  const banner =
    state === 'lost'
      ? answers
        ? [
            'warning',
            "Live numbers don't arrive; too many viewers may be connected. The page tries again automatically.",
          ]
        : ['danger', "The app doesn't respond. The numbers shown are old; the page reconnects automatically."]
      : state === 'denied'
        ? ['danger', 'You are no longer signed in. Sign in, and reload this page.']
        : problem !== undefined
          ? ['warning', problem]
          : about === undefined && error !== undefined
            ? ['danger', error]
            : about?.changesUnread !== undefined
              ? ['warning', about.changesUnread]
              : undefined;
  return (
    <div role="status" aria-live="assertive">
      {banner && (
        <p class={`banner ${banner[0]}`}>
          <Icon name="alert" />
          {banner[1]}
        </p>
      )}
    </div>
  );
}

function Toasts(): JSX.Element {
  const shown = useStore(toasts);
  return (
    <div class="toasts" role="status">
      {shown.map((toast) => (
        <div class={`toast ${toast.kind}`} key={toast.id}>
          <Icon name={toast.kind === 'done' ? 'done' : 'alert'} />
          <span>{toast.text}</span>
          {toast.undo && (
            <button type="button" class="undo" onClick={() => void undo(toast)}>
              Undo
            </button>
          )}
          <button type="button" aria-label="Close the message" onClick={() => dismiss(toast.id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
