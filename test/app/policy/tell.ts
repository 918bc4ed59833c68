import { PlainValue } from '../../../lib/app/policy/located.js';
import { RATE_LIMIT_POLICIES } from '../../../lib/app/config/tokens.js';
import type { Policies } from '../../../lib/app/policy/policies.js';
import { Problems } from '../../../lib/app/policy/problems.js';
import { readPolicy } from '../../../lib/app/policy/read-policy.js';

/** Lets an app hear of a version of its policy, now. */
export function tell(app: { get: (token: typeof RATE_LIMIT_POLICIES) => Policies }, policy: object): void {
  app.get(RATE_LIMIT_POLICIES).hear(readPolicy('policy', new PlainValue(policy, 'policy'), new Problems()));
}
