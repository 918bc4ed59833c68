import { algorithms } from '../../engine/algorithms/index.js';
import { checkLimit } from '../../app/config/limit-options.js';
import type { ExactLimit } from '../../app/config/limit-definition.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { blockTerms } from '../../engine/limits/block-terms.js';
import { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { FilePolicySource } from '../../app/policy/file.source.js';
import { showProblem } from '../../app/policy/problems.js';
import { isPolicyPath } from '../../app/policy/read-text.js';
import { algorithmOptions } from '../../app/rules/common-options.js';
import { InputError, UsageError } from '../command.js';
import type { LimitSpec } from '../limit-spec.js';

/** Keys of limits that are fields of logs, too. */
const FIELDS = ['ip', 'user', 'global'];

/** A limit of a policy, with what the report calls it. */
export interface PolicyLimitSpec extends LimitSpec {
  readonly spec: string;
}

/** The limits of a policy file that can be simulated: those with an algorithm that are neither off nor `concurrency`. */
export async function policyLimits(path: string): Promise<PolicyLimitSpec[]> {
  if (!isPolicyPath(path)) throw new UsageError(cliMessages.noPolicyFile(path));
  const reading = await new FilePolicySource(path).read();
  if ('problems' in reading) throw new InputError(reading.problems.map(showProblem).join('; '));
  const found: PolicyLimitSpec[] = [];
  for (const [name, { options, mode, place }] of reading.policy.limits) {
    const { algo } = options;
    if (algo === undefined || mode === 'off' || algorithms.get(algo)?.leases !== undefined) continue;
    const definition = { ...options, name } as ExactLimit;
    checkLimit(definition, place);
    const { blockFor, strike, forgetAfter, key } = definition;
    const terms = blockTerms({ blockFor, strike, forgetAfter }, place);
    const limit = new CompiledLimit(algorithmOptions(definition), {
      location: place,
      name,
      shadow: mode === 'shadow',
      ...terms,
    });
    const own = typeof key === 'string' && FIELDS.includes(key) ? key : undefined;
    found.push({ limit, key: own, spec: algorithms.get(algo)!.defaultName(algorithmOptions(definition) as never) });
  }
  if (found.length === 0) throw new InputError(cliMessages.nothingToSimulate(path));
  return found;
}
