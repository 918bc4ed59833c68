import { fraction } from '../../engine/options/kinds.js';
import { isObject, isObjectOfOptions } from '../../engine/options/values.js';
import { isCallable, isRecord } from '../../engine/util/objects.js';
import { HOOK_EXPECTED } from '../hooks/decision-hook.js';
import { REFUSAL_EXPECTED } from '../http/refusal-answer.js';
import type { RateLimitModuleOptions } from './module-options.js';

type OptionCheck = readonly [expected: string, isValid: (value: unknown) => boolean];

const HOOK: OptionCheck = [HOOK_EXPECTED, (value) => typeof value === 'function'];
const SWITCH: OptionCheck = ['true or false', (value) => typeof value === 'boolean'];

/** The module options for which a check of the type is enough. The others have their own readers. */
export const OPTION_CHECKS: readonly (readonly [option: keyof RateLimitModuleOptions, ...OptionCheck])[] = [
  ['limits', 'a list of limits', Array.isArray],
  ['define', 'an object of limits by their names', isObjectOfOptions],
  ['policy', "an object such as { source: './limits.yaml' }", isObject],
  ['defaults', 'an object of options of limits', isObjectOfOptions],
  ['exposeHeaders', ...SWITCH],
  ['prefix', 'a string that is not empty and holds no braces', isPrefix],
  ['retryJitter', 'a number from 0 to 1', (value) => typeof value === 'number' && value >= 0 && value <= 1],
  ['problem', ...SWITCH],
  ['retryAfter', ...SWITCH],
  ['answer', REFUSAL_EXPECTED, (value) => typeof value === 'function'],
  ['body', 'a function that returns an object', isCallable],
  ['refusalCache', ...SWITCH],
  ['readers', 'a list of RequestReaders', Array.isArray],
  ['telemetry', ...SWITCH],
  ['store', 'a Store', (value) => isRecord(value) && typeof value['check'] === 'function'],
  ['onDecision', ...HOOK],
  ['onRefused', ...HOOK],
  ['onNear', ...HOOK],
  ['localShare', fraction.expected, fraction.isValid],
];

/** The options of the module, except `guard`, in the order in which messages list them. */
export const MODULE_OPTIONS: readonly (keyof RateLimitModuleOptions)[] = [
  'redis',
  'regions',
  'limits',
  'define',
  'defaults',
  'headers',
  'exposeHeaders',
  'retryJitter',
  'problem',
  'body',
  'answer',
  'retryAfter',
  'lists',
  'timeout',
  'resolveTimeout',
  'gather',
  'sendTimeout',
  'onStoreError',
  'localShare',
  'onMissingKey',
  'onMissingReader',
  'ipv6Prefix',
  'prefix',
  'maxKeys',
  'maxWaiters',
  'maxBytes',
  'refusalCache',
  'telemetry',
  'store',
  'readers',
  'policy',
  'onDecision',
  'onRefused',
  'onNear',
];

/** Returns true if the module has an option of this name. */
export function isModuleOption(name: string): boolean {
  return name === 'guard' || (MODULE_OPTIONS as readonly string[]).includes(name);
}

function isPrefix(value: unknown): boolean {
  return typeof value === 'string' && /^[^{}]+$/.test(value);
}
