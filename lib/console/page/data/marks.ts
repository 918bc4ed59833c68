import type { ChangeInfo, Figures, InstanceInfo } from '../../api.js';
import type { ChartMark } from '../parts/chart-options.js';
import { plural, withMoments } from './format.js';
import { setParams, useParam } from './route.js';

/** The part of a range that charts display, in milliseconds since the epoch. It is in the address. */
interface Zoom {
  readonly from: number;
  readonly to: number;
}

/** The zoom in the address, and a function that changes it: `undefined` displays the whole range. */
export function useZoom(): [Zoom | undefined, (zoom: Zoom | undefined) => void] {
  const [from] = useParam('from', '');
  const [to] = useParam('to', '');
  const zoom = { from: Number(from), to: Number(to) };
  const set = (next: Zoom | undefined): void =>
    setParams(
      next === undefined
        ? { from: '', to: '' }
        : { from: String(Math.floor(next.from)), to: String(Math.ceil(next.to)) },
    );
  return [from !== '' && to !== '' && zoom.from < zoom.to ? zoom : undefined, set];
}

/** The indexes of the steps to display: those of the zoom, if there are at least two. */
export function stepsIn(times: readonly number[], zoom: Zoom | undefined): { from: number; to: number } {
  const all = { from: 0, to: times.length };
  if (zoom === undefined) return all;
  const from = times.findIndex((time) => time >= zoom.from);
  const to = times.findLastIndex((time) => time <= zoom.to) + 1;
  return from >= 0 && to - from >= 2 ? { from, to } : all;
}

/**
 * The first step with known data: the first one with any counts, or in which a running instance already existed.
 */
export function firstKnown({ series, instances, stepMs }: Figures): number {
  const started = Math.min(...instances.map(({ startedAt }) => startedAt));
  const known = series.times.findIndex((time, at) => (series.store.checks[at] ?? 0) > 0 || time + stepMs > started);
  return known === -1 ? series.times.length : known;
}

/** Instances that start within this time are one deployment. */
const DEPLOYMENT_MS = 300_000;

const ACTIONS: Partial<Record<ChangeInfo['action'], string>> = {
  rate: 'the rate was changed',
  mode: 'the mode was changed',
  list: 'a list was changed',
  rollback: 'changes were rolled back',
};

/** The changes of rates, modes and lists. Changes of single keys would be too many marks. */
export function changeMarks(changes: readonly ChangeInfo[]): ChartMark[] {
  return changes
    .filter(({ action, key }) => ACTIONS[action] !== undefined && (key === null || action === 'rollback'))
    .map(({ at, action, limit, after, by, reason }) => {
      const what = `${limit ?? 'all limits'}: ${ACTIONS[action]!}${after === undefined ? '' : `, to ${withMoments(after)}`}`;
      return {
        at,
        kind: 'change',
        label: `${what}${by === undefined ? '' : `, by ${by}`}${reason === undefined ? '' : ` (${reason})`}`,
      };
    });
}

/** The starts of instances. Those of one deployment are combined. */
export function startMarks(instances: readonly InstanceInfo[]): ChartMark[] {
  const groups: InstanceInfo[][] = [];
  for (const instance of instances.toSorted((one, other) => one.startedAt - other.startedAt)) {
    const last = groups.at(-1);
    if (last !== undefined && instance.startedAt - last.at(-1)!.startedAt < DEPLOYMENT_MS) last.push(instance);
    else groups.push([instance]);
  }
  return groups.map((group) => ({
    at: group[0]!.startedAt,
    kind: 'start',
    label: `${plural(group.length, 'instance')} started`,
  }));
}
