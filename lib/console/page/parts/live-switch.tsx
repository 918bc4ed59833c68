import type { JSX } from 'preact';
import { connection } from '../data/connection.js';
import { pause, resume } from '../data/live.js';
import { useStore } from '../data/store.js';
import { Icon } from './icons.js';
import { Badge } from './small.js';

const STATES = {
  connecting: { tone: 'plain', text: 'Connecting' },
  live: { tone: 'good', text: 'Live' },
  paused: { tone: 'plain', text: 'Paused' },
  lost: { tone: 'danger', text: 'Not connected' },
  denied: { tone: 'danger', text: 'Signed out' },
} as const;

/** Shows whether the numbers are live, and stops and starts them. */
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
        {paused ? 'Go on' : 'Pause'}
      </button>
    </>
  );
}
