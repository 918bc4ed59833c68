import { BLOCK_EXPECTED, isStepwise, MAX_STEPS } from '../../engine/limits/block-terms.js';
import { limitName } from '../../engine/limits/limit-settings.js';
import { flag, time, times, whole } from '../../engine/options/kinds.js';
import type { Able, OptionRows } from '../../engine/options/option-row.js';

/** For options that adaptive limits don't support. */
export const notAdapting = ({ adapting }: Able): boolean => adapting === undefined;

/** The options of features that don't have their own folder yet. */
export const featureOptions = {
  within: {
    kind: { ...limitName, expected: "the name of a limit of 'define' or forFeature, such as 'org'" },
    text: 'The name of the parent limit: both are charged together, or neither is.',
    usual: 'none',
    for: notAdapting,
    // These options take units in advance, use units of other keys, or depend on the state of a single counter.
    excludes: ['prefetch', 'share', 'credits', 'rollover', { option: 'anchor', asFunction: true }],
  },
  blockFor: {
    kind: times(BLOCK_EXPECTED, MAX_STEPS, isStepwise),
    text: "Blocks a rejected key for this time, such as '15m', or longer after each offence: ['1m', '1h'].",
    usual: 'not at all',
    inDefaults: true,
    live: 'policy',
    onCommandLine: true,
    isLong: true,
    for: notAdapting,
  },
  strike: {
    kind: flag,
    text: 'True lets attempts during a block extend it: it ends once the key has made none for its length.',
    default: false,
    live: 'policy',
    onCommandLine: true,
    for: notAdapting,
    needs: { blockFor: 'for how long a refused key is blocked' },
  },
  forgetAfter: {
    kind: time,
    text: "How long after its last block a key's offences are forgotten, if 'blockFor' is a list.",
    usual: 'last of the list',
    inDefaults: true,
    live: 'policy',
    onCommandLine: true,
    isLong: true,
    for: notAdapting,
  },
  countRefused: {
    kind: flag,
    text: 'True also counts rejected attempts, and reports their number in decisions.',
    usual: 'not counted',
    live: 'policy',
    for: ({ beyond }) => beyond !== undefined,
    // A block resets the counter, and each of the other options changes how many units may be used.
    excludes: ['blockFor', 'hold', 'prefetch', 'share', 'reserveFor', 'ceiling', 'lends', 'credits', 'rollover'],
  },
  replicas: {
    kind: whole(1, 100),
    text: 'The number of Redis replicas that must confirm a charge before the check returns.',
    usual: 'none',
    live: 'policy',
    for: notAdapting,
    // Replicas cannot confirm decisions that this process makes alone.
    excludes: ['prefetch', { option: 'scope', value: 'instance' }],
  },
} as const satisfies OptionRows;
