import { Logger } from '@nestjs/common';
import type { AlgorithmOptions } from '../../../lib/index.js';
import { CompiledLimit, type LimitSettings } from '../../../lib/testing/store/index.js';
import { featuresOfOptions } from '../../../lib/storage/features/index.js';
import { OnceLogger } from '../../../lib/engine/errors/logger.js';
import { Rule } from '../../../lib/app/rules/rule.js';
import type { RuleSettings } from '../../../lib/app/rules/rule.js';

/** A key that all requests have. */
export const byGlobal = {
  given: 'global',
  name: 'global',
  noun: 'key',
  needsRoute: false,
  needsUser: false,
  identify: () => 'global',
} as const;

/** A rule without an app. */
export function ruleOf(
  options: AlgorithmOptions,
  limit: Partial<LimitSettings> = {},
  settings: Partial<RuleSettings> = {},
): Rule {
  return new Rule(new CompiledLimit(options, { location: 'test', name: 'one', featuresOfOptions, ...limit }), {
    key: byGlobal,
    byAddress: () => undefined,
    onMissingKey: 'skip',
    onMissingReader: 'refuse',
    phase: 'guard',
    cost: 1,
    hasCost: false,
    priority: undefined,
    perRoute: false,
    unnamed: false,
    count: 'all',
    options: {},
    answer: {} as never,
    log: new OnceLogger(new Logger('RateLimit')),
    ...settings,
  });
}
