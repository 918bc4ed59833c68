import { BLOCK_EXPECTED, isStepwise, MAX_STEPS } from '../../engine/limits/block-terms.js';
import { limitName } from '../../engine/limits/limit-settings.js';
import { flag, time, times, whole } from '../../engine/options/kinds.js';
import type { Able, OptionRows } from '../../engine/options/option-row.js';

const notAdapting = ({ adapting }: Able) => adapting === undefined;

const blockOptions = {
  blockFor: {
    kind: times(BLOCK_EXPECTED, MAX_STEPS, isStepwise),
    text: "Blocks a refused key for this time, such as '15m', or longer with each offence: ['1m', '1h'].",
    usual: 'not at all',
    inDefaults: true,
    live: 'policy',
    onCommandLine: true,
    isLong: true,
    for: notAdapting,
  },
  strike: {
    kind: flag,
    text: 'Whether tries during a block prolong it: it lasts until a key has made none for so long.',
    default: false,
    live: 'policy',
    onCommandLine: true,
    for: notAdapting,
    needs: { blockFor: 'for how long a refused key is blocked' },
  },
  forgetAfter: {
    kind: time,
    text: "Forgets offences so long after the last block, where 'blockFor' is a list.",
    usual: 'last of the list',
    inDefaults: true,
    live: 'policy',
    onCommandLine: true,
    isLong: true,
    for: notAdapting,
  },
} as const satisfies OptionRows;

const triesOptions = {
  countRefused: {
    kind: flag,
    text: 'Whether tries that the limit refuses count, too, so decisions say how many were made.',
    usual: 'not counted',
    live: 'policy',
    for: ({ beyond }) => beyond !== undefined,
    // A block resets the counter, and each of the other options changes how many units may be used.
    excludes: ['blockFor', 'hold', 'prefetch', 'share', 'reserveFor', 'ceiling', 'lends', 'credits', 'rollover'],
  },
} as const satisfies OptionRows;

const hierarchyOptions = {
  within: {
    kind: { ...limitName, expected: "the name of a limit of 'define' or forFeature, such as 'org'" },
    text: 'The name of a limit that this one is within: both are charged together, or none.',
    usual: 'none',
    for: notAdapting,
    // These options take units in advance, use units of other keys, or depend on the state of a single counter.
    excludes: ['prefetch', 'share', 'credits', 'rollover', { option: 'anchor', asFunction: true }],
  },
} as const satisfies OptionRows;

const replicaOptions = {
  replicas: {
    kind: whole(1, 100),
    text: 'How many replicas of Redis have to confirm what is charged before the call is answered.',
    usual: 'none',
    live: 'policy',
    for: notAdapting,
    // Replicas cannot confirm decisions that this process makes alone.
    excludes: ['prefetch', { option: 'scope', value: 'instance' }],
  },
} as const satisfies OptionRows;

/** The options of features that don't have their own folder yet. */
export const featureOptions = {
  ...hierarchyOptions,
  ...blockOptions,
  ...triesOptions,
  ...replicaOptions,
} as const satisfies OptionRows;
