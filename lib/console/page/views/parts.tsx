import { legible } from '../../../engine/util/figures.js';
import type { JSX } from 'preact';
import type { LimitInfo, Tenants, Tree, TreeNode } from '../../api.js';
import { amount, clock, duration, moment, percent, units } from '../data/format.js';
import { useResource } from '../data/client.js';
import { hrefOf } from '../data/route.js';
import { limitNamed, session } from '../data/session.js';
import { identityOf, useStore } from '../data/store.js';
import { Badge, Bar, Empty, Fact, Note, Panel, Table, Waiting } from '../parts/small.js';

const EVERY_MS = 5_000;
/** A counter is near its quota from this share on. */
const NEAR = 0.8;

/** The parts of a limit: levels of a hierarchy, tenants, and plans. */
export function Parts({ limit }: { limit: LimitInfo }): JSX.Element | null {
  const { session: about } = useStore(session);
  const isLevel = limit.within !== undefined || about?.limits.some(({ within }) => within === limit.name);
  if (!limit.addressable) return limit.plan ? <PlanPanel limit={limit} /> : null;
  return (
    <>
      {isLevel && <TreePanel limit={limit} />}
      {limit.share && <TenantsPanel limit={limit} share={limit.share} />}
      {limit.plan && <PlanPanel limit={limit} />}
    </>
  );
}

function TreePanel({ limit }: { limit: LimitInfo }): JSX.Element {
  const { data, error, reload } = useResource<Tree>(`api/tree?limit=${encodeURIComponent(limit.name)}`, EVERY_MS);
  if (!data) return <Waiting error={error} what="levels" onRetry={reload} />;
  const depths = new Map<string, number>();
  for (const { id, parent } of data.nodes) depths.set(id, parent === undefined ? 0 : (depths.get(parent) ?? -1) + 1);
  const note =
    data.since === null
      ? 'Keys are counted while somebody views this page.'
      : `Of clients that were counted since ${clock(data.since)}, as it was at ${clock(data.at)}${
          data.more ? '; there are more' : ''
        }.`;
  return (
    <Panel id="levels" title="Levels" note={note} bare>
      {data.problem !== undefined && <Note danger>{data.problem}</Note>}
      {data.nodes.length === 0 ? (
        <Empty icon="limit" title="No client is known yet">
          Levels appear here a few seconds after a client is counted.
        </Empty>
      ) : (
        <Table id="levels" of={['Level', 'Used', 'Left', 'Borrowed']} numbers={['Left', 'Borrowed']}>
          {data.nodes.map((node) => (
            <TreeRow key={node.id} node={node} depth={depths.get(node.id) ?? 0} />
          ))}
        </Table>
      )}
    </Panel>
  );
}

function TreeRow({ node, depth }: { node: TreeNode; depth: number }): JSX.Element {
  const { limit, key, used, quota, borrowed, unread } = node;
  const unit = limitNamed(limit)?.unit;
  const name = legible(identityOf(key) ?? key);
  return (
    <tr>
      <th scope="row" class={`level level-${Math.min(depth, 5)}`}>
        <span class="breakable">{name}</span>
        <span class="sub">
          <a href={hrefOf('limit', limit)}>{limit}</a>
          {depth > 0 && <span class="hidden-text">, level {depth + 1}</span>}
        </span>
      </th>
      <td data-label="Used">
        {used === null ? (
          <span class="soft" title={unread}>
            not known
          </span>
        ) : (
          <Used used={used} quota={quota} unit={unit} label={`Used of ${name}`} />
        )}
      </td>
      <td data-label="Left" class="number">
        {used === null ? '–' : amount(quota - used, unit)}
      </td>
      <td data-label="Borrowed" class="number">
        {borrowed > 0 ? <Badge tone="warning">{amount(borrowed, unit)}</Badge> : '–'}
      </td>
    </tr>
  );
}

function Used({
  used,
  quota,
  unit,
  label,
}: {
  used: number;
  quota: number;
  unit: string | undefined;
  label: string;
}): JSX.Element {
  const share = quota === 0 ? 0 : used / quota;
  return (
    <>
      <span class="numbers">
        {amount(used, unit)} <span class="soft">of {amount(quota, unit)}</span>
      </span>
      <Bar share={share} tone={share >= 1 ? 'full' : share >= NEAR ? 'near' : undefined} label={label} />
    </>
  );
}

function TenantsPanel({ limit, share }: { limit: LimitInfo; share: { by: string; floor: number } }): JSX.Element {
  const { storage } = useStore(session).session ?? {};
  const { data, error, reload } = useResource<Tenants>(`api/tenants?limit=${encodeURIComponent(limit.name)}`, EVERY_MS);
  if (!data) return <Waiting error={error} what="tenants" onRetry={reload} />;
  const { unit } = limit;
  const floor = share.floor === 0 ? 'none has a floor' : `each may always use ${amount(share.floor, unit)}`;
  return (
    <Panel
      id="tenants"
      title="Tenants"
      note={`Shared by ${share.by}; ${floor}. State at ${clock(data.at)}: the busiest tenants for their weights, at most eight.`}
      bare
    >
      {data.problem !== undefined && <Note danger>{data.problem}</Note>}
      {data.counters.length === 0 ? (
        <Empty icon="limit" title={storage === 'redis' ? 'No tenant is active' : 'Not known'}>
          {storage === 'redis'
            ? 'Tenants appear here while they use units.'
            : 'Tenants are known for limits that count on Redis.'}
        </Empty>
      ) : (
        <Table id="tenants" of={['Tenant', 'Weight', 'Share used']} numbers={['Weight']}>
          {data.counters.flatMap((counter) =>
            counter.tenants.map(({ id, name = id, weight, part, used }) => (
              <tr key={`${counter.id} ${id}`}>
                <th scope="row">
                  <span class="breakable">{name === '*' ? 'all that are not listed' : legible(name)}</span>
                  <span class="sub">
                    of {legible(identityOf(counter.key) ?? counter.key)}, in {duration(counter.spanMs)}
                  </span>
                </th>
                <td data-label="Weight" class="number">
                  {weight} of {counter.weights}
                </td>
                <td data-label="Share used">
                  <Used used={used} quota={part} unit={unit} label={`Used by ${legible(name)}`} />
                  {used > part && <Badge tone="warning">{amount(used - part, unit)} of others</Badge>}
                </td>
              </tr>
            )),
          )}
        </Table>
      )}
    </Panel>
  );
}

function PlanPanel({ limit }: { limit: LimitInfo }): JSX.Element {
  const { period, timezone, anchor, rollover, credits } = limit.plan!;
  const left = rollover === undefined ? 'nothing that is left' : `${percent(rollover, 1)} of what is left`;
  return (
    <Panel id="plan" title={limit.algo === 'budget' ? 'Budget' : 'Plan'}>
      <dl class="facts">
        <Fact name="Quota">{`${amount(limit.quota, limit.unit)} a ${period}`}</Fact>
        <Fact name="Windows begin">{beginsOf(anchor, period, timezone)}</Fact>
        <Fact name="Moves on">{left}</Fact>
        <Fact name="Credits">{credits ? 'customers may have prepaid units' : 'none'}</Fact>
      </dl>
    </Panel>
  );
}

function beginsOf(anchor: number | 'each' | undefined, period: string, timezone: string): string {
  if (anchor === undefined) return `as the ${period} does in ${timezone}`;
  return anchor === 'each'
    ? `for each customer on a date of its own, in ${timezone}`
    : `${moment(anchor)}, and each ${period} after it`;
}

/** The position of a limit in its hierarchy, as a line. */
export function partsText(limit: LimitInfo): string {
  const { within, own, kept, unit } = limit;
  const texts = [
    within !== undefined && `within ${within}`,
    own !== undefined && `borrows beyond ${amount(own, unit)}`,
    kept !== undefined && `keeps ${units(kept, unit)} from borrowers`,
  ].filter((text) => text !== false);
  return texts.length === 0 ? '' : `, ${texts.join(', ')}`;
}
