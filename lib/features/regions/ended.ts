import type { InstanceChannel } from '../../redis/instance-channel.js';
import type { OperationName } from '../../stores/operation.js';
import { readTexts } from './texts.js';

/** What regions do with the units that they hold once a counter was changed at home. */
export type Ahead = 'reset' | 'learn';

/** What is done at home, and what regions do then. */
export const AT_HOME: { readonly [N in OperationName]?: { readonly ahead?: Ahead } } = {
  block: { ahead: 'learn' },
  reset: { ahead: 'reset' },
  history: {},
  blockedFor: {},
};

/** That a counter was changed at home. */
export interface End {
  /** The region that has done so, and knows; empty if none has. */
  readonly region: string;
  readonly ahead: string;
  /** The counter: see `addressOf`. */
  readonly address: string;
}

/** Tells all regions. Time counts from `since`. */
export function publishEnd(channel: InstanceChannel, { region, ahead, address }: End, since: number): Promise<void> {
  return channel.publish(JSON.stringify([region, ahead, address]), since);
}

/** Reads such a message; `undefined` if it is none. */
export function readEnd(message: string): End | undefined {
  const [region, ahead, address] = readTexts(message, 3) ?? [];
  return address === undefined ? undefined : { region: region!, ahead: ahead!, address };
}
