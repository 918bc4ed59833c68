import type { Counter } from '../../limits/counter.js';
import type { InstanceChannel } from '../../redis/instance-channel.js';
import type { OperationName } from '../../stores/operation.js';
import { addressOf } from './counter-index.js';

/** What regions do with the units that they hold once a counter was changed at home. */
export type Ahead = 'reset' | 'learn';

/** What is done at home, and what regions do then. */
export const AT_HOME: { readonly [N in OperationName]?: { readonly ahead?: Ahead } } = {
  block: { ahead: 'learn' },
  reset: { ahead: 'reset' },
  history: {},
  blockedFor: {},
};

/** Tells all regions that a counter was changed at home. Time counts from `since`. */
export function publishEnd(channel: InstanceChannel, ahead: Ahead, counter: Counter, since: number): Promise<void> {
  return channel.publish(`${ahead} ${addressOf(counter)}`, since);
}

/** Reads such a message. */
export function readEnd(message: string): readonly [ahead: string, address: string] {
  const at = message.indexOf(' ');
  return [message.slice(0, at), message.slice(at + 1)];
}
