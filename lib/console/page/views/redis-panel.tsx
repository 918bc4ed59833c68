import type { JSX } from 'preact';
import type { RedisInfo } from '../../api.js';
import { bytes, milliseconds, percent } from '../data/format.js';
import { Badge, Bar, Empty, Panel } from '../parts/small.js';

/** The server that counts. */
export function RedisPanel({ redis, stale }: { redis: RedisInfo | null; stale: boolean }): JSX.Element {
  if (redis === null) {
    return (
      <Panel id="redis" title="Redis">
        <Empty icon="info" title="The app counts in process">
          Each instance counts for itself, and only the one that answers is shown. Give the module the option redis, and
          all of them share their counters.
        </Empty>
      </Panel>
    );
  }
  const { up, mode, version, usedMemory, maxMemory, ourKeysBytes, latencyMs } = redis;
  const limited = maxMemory !== null && maxMemory > 0;
  return (
    <Panel
      id="redis"
      title="Redis"
      aside={
        <Badge tone={stale ? 'plain' : up ? 'good' : 'danger'}>
          <span class="dot" />
          {stale ? 'unknown' : up ? 'answers' : 'does not answer'}
        </Badge>
      }
    >
      <dl class="facts">
        <dt>Server</dt>
        <dd>
          {version ?? 'unknown'}, {mode}
        </dd>
        <dt>Answers in</dt>
        <dd>{latencyMs === null ? 'unknown' : milliseconds(latencyMs)}</dd>
        <dt>Memory</dt>
        <dd>
          {bytes(usedMemory)}
          {limited ? ` of ${bytes(maxMemory)}` : maxMemory === 0 ? ', without a bound' : ''}
        </dd>
        <dt>Keys of limits</dt>
        <dd>
          {ourKeysBytes === null ? (
            'unknown'
          ) : (
            <>
              about {bytes(ourKeysBytes)}
              {usedMemory !== null && <span class="soft"> ({percent(ourKeysBytes, usedMemory)})</span>}
            </>
          )}
        </dd>
      </dl>
      {limited && usedMemory !== null && (
        <div class="shares">
          <Bar
            label="Memory of Redis in use"
            share={usedMemory / maxMemory}
            tone={usedMemory > 0.9 * maxMemory ? 'full' : undefined}
          />
        </div>
      )}
    </Panel>
  );
}
