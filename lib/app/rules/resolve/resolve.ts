import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { CheckEntry } from '../../../engine/limits/counter.js';
import type { Priority } from '../../../engine/limits/arguments.js';
import { andThen, type Awaitable } from '../../../engine/util/awaitable.js';
import type { Rule } from '../rule.js';
import type { LevelInput, RequestInput } from './rule-input.js';

/** The entry that a rule sends to the store for a request. The cost isn't resolved if the limit is switched off. */
export interface RuleEntry extends CheckEntry {
  readonly rule: Rule;
}

/** The reason why a limit does not apply to a request: its `skip` exempts the request, or a key is missing. */
export type NotApplying = 'skip' | 'no key';

/** The name of an option that is resolved, for error messages. */
export type ResolvedOption = string;

/**
 * Resolves the entry of a rule for a request. Functions are called one after another, until one of them shows that the limit does not
 * apply.
 *
 * @param levels the request's input at all levels, if the rule has a parent or children
 * @param onOption called before an option is resolved
 */
export function resolve(
  rule: Rule,
  request: RequestInput,
  levels: LevelInput = request,
  onOption?: (option: ResolvedOption) => void,
): Awaitable<RuleEntry | NotApplying> {
  type Resolved = Awaitable<RuleEntry | NotApplying>;
  onOption?.('skip');
  return andThen(levels.skips(rule), (skips): Resolved => {
    if (skips) return 'skip';
    onOption?.('key');
    return andThen(levels.identity(rule), (identity): Resolved => {
      if (identity === undefined) return 'no key';
      const limit = rule.limitFor(identity);
      if (limit.off) return { rule, limit, identity, cost: 0 };
      const { trait } = rule.settings;
      if (trait !== undefined) onOption?.(trait.option);
      return andThen(request.version(rule, limit), (version): Resolved => {
        if (version === undefined) return 'no key';
        onOption?.('priority');
        return andThen(request.priority(rule), (priority): Resolved => {
          onOption?.('cost');
          return andThen(levels.cost(rule), (cost) => entryOf(rule, version, identity, cost, priority));
        });
      });
    });
  });
}

/** Creates the entry of a rule from resolved values. */
export function entryOf(
  rule: Rule,
  whole: CompiledLimit,
  identity: string,
  cost: number,
  priority: Priority | undefined,
): RuleEntry {
  const limit = whole.meet(priority === rule.fixedPriority ? rule.usual : { priority });
  return priority === undefined ? { rule, limit, identity, cost } : { rule, limit, identity, cost, priority };
}
