import type { JSX } from 'preact';
import type { InstanceInfo } from '../../api.js';
import { duration, moment, relative, signedMilliseconds } from '../data/format.js';
import { useNow } from '../data/now.js';
import { Badge, Panel } from '../parts/small.js';

/** A clock that is off by more than this is highlighted. */
const CLOCK_MS = 1_000;
const SILENT_MS = 5_000;

const CIRCUITS = {
  closed: { tone: 'good', text: 'closed' },
  open: { tone: 'danger', text: 'open' },
  none: { tone: 'plain', text: 'none' },
} as const;

/** The instances of the app. */
export function Instances({
  instances,
  lost,
}: {
  instances: readonly InstanceInfo[];
  lost: readonly InstanceInfo[];
}): JSX.Element {
  const now = useNow();
  return (
    <Panel
      id="instances"
      title="Instances"
      note={`Running: ${instances.length}${lost.length === 0 ? '' : `, lost in the last minutes: ${lost.length}`}.`}
      bare
    >
      <table class="table" aria-labelledby="instances">
        <thead>
          <tr>
            <th scope="col">Instance</th>
            <th scope="col">Version</th>
            <th scope="col">Up for</th>
            <th scope="col" class="number">
              Clock is off by
            </th>
            <th scope="col">Circuit</th>
            <th scope="col">Heard of</th>
          </tr>
        </thead>
        <tbody>
          {[...instances, ...lost].map((instance) => (
            <tr key={instance.id}>
              <th scope="row">
                <span class="main-text">
                  {instance.host}, process {instance.pid}
                </span>{' '}
                {instance.self && <Badge tone="accent">answers you</Badge>}
                {lost.includes(instance) && <Badge tone="danger">lost</Badge>}
                <span class="sub mono breakable">{instance.id}</span>
              </th>
              <td data-label="Version">{instance.version}</td>
              <td data-label="Up for" class="numbers" title={`since ${moment(instance.startedAt)}`}>
                {duration(Math.max(1_000, now - instance.startedAt))}
              </td>
              <td data-label="Clock is off by" class="number">
                {Math.abs(instance.clockOffsetMs) >= CLOCK_MS ? (
                  <Badge tone="warning">{signedMilliseconds(instance.clockOffsetMs)}</Badge>
                ) : (
                  signedMilliseconds(instance.clockOffsetMs)
                )}
              </td>
              <td data-label="Circuit">
                <Badge tone={CIRCUITS[instance.circuit].tone}>{CIRCUITS[instance.circuit].text}</Badge>
              </td>
              <td data-label="Heard of" class="when numbers">
                {now - instance.lastSeenAt < SILENT_MS ? 'just now' : relative(instance.lastSeenAt, now)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}
