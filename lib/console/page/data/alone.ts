import type { InstanceInfo } from '../../api.js';

/** Whether the other instances could not be read, so that only the one that responds is shown. */
export function isAlone({ problem, instances }: { problem?: string; instances: readonly InstanceInfo[] }): boolean {
  return problem !== undefined && instances.every(({ self }) => self);
}
