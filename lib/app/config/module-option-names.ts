import type { RateLimitModuleOptions } from './module-options.js';

/** The options of the module, except `guard`. */
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
