import type { Provider } from '@nestjs/common';
import type { Policy } from '../app/config/policy.js';
import type { RateLimitSettings } from '../app/config/settings.js';
import { POLICY_SETTINGS, RATE_LIMIT_POLICY, RATE_LIMIT_SETTINGS } from '../app/config/tokens.js';
import { RateLimitConfigError } from '../engine/errors/errors.js';
import { policyMessages } from '../engine/errors/messages/policy.js';
import { Policies } from '../app/policy/policies.js';
import { type PolicySettings, readPolicySettings } from '../app/policy/policy-settings.js';
import { showProblem } from '../app/policy/problems.js';

/** The first version of the policy is read before the first limit. */
export const policyProviders: readonly Provider[] = [
  {
    provide: POLICY_SETTINGS,
    useFactory: ({ options: { policy } }: RateLimitSettings) =>
      policy === undefined ? undefined : readPolicySettings(policy),
    inject: [RATE_LIMIT_SETTINGS],
  },
  {
    provide: RATE_LIMIT_POLICY,
    useFactory: async (settings?: PolicySettings): Promise<Policy | undefined> => {
      if (settings === undefined) return undefined;
      const reading = await settings.source.read();
      if ('policy' in reading) return reading.policy;
      throw new RateLimitConfigError(policyMessages.refused(reading.problems.map(showProblem)));
    },
    inject: [POLICY_SETTINGS],
  },
  Policies,
];
