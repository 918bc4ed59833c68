import type { ChangeInfo, InstanceInfo } from '../../api.js';
import type { ChartMark } from '../parts/chart-marks.js';
import { plural, withMoments } from './format.js';

/** Instances that start within this time are one deployment. */
const DEPLOYMENT_MS = 300_000;

const ACTIONS: Partial<Record<ChangeInfo['action'], string>> = {
  rate: 'the rate was changed',
  mode: 'the mode was changed',
  list: 'a list was changed',
  rollback: 'changes were rolled back',
};

/** The changes of rates, modes and lists. Those of single keys are too many to be marked. */
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

/** The starts of instances, those of one deployment together. */
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
