import { PlainValue } from '../../../lib/app/policy/located.js';
import { Policies } from '../../../lib/app/policy/policies.js';
import { Problems } from '../../../lib/app/policy/problems.js';
import { readPolicy } from '../../../lib/app/policy/read-policy.js';

/** Lets an app hear of a version of its policy, now. */
export function tell(app: { get: (type: typeof Policies) => Policies }, policy: object): void {
  app.get(Policies).hear(readPolicy('policy', new PlainValue(policy, 'policy'), new Problems()));
}
