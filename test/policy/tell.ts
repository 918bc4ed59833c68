import { PlainValue } from '../../lib/policy/plain-value.js';
import { Policies } from '../../lib/policy/policies.js';
import { Problems } from '../../lib/policy/problems.js';
import { readPolicy } from '../../lib/policy/read-policy.js';

/** Lets an app hear of a version of its policy, now. */
export function tell(app: { get: (type: typeof Policies) => Policies }, policy: object): void {
  app.get(Policies).hear(readPolicy('policy', new PlainValue(policy, 'policy'), new Problems()));
}
