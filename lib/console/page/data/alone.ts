import type { InstanceInfo } from '../../api.js';

/** Whether the other instances could not be read: what is shown is of the one that answers. */
export function isAlone({ problem, instances }: { problem?: string; instances: readonly InstanceInfo[] }): boolean {
  return problem !== undefined && instances.every(({ self }) => self);
}
