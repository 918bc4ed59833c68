import type { BoundKey } from '../../app/key-resolvers/key-resolver.factory.js';
import { missingKeyOutcome } from '../../app/rules/resolve/identity.js';
import { LeveledInput } from '../../app/rules/resolve/leveled-input.js';
import { resolve, type ResolvedOption } from '../../app/rules/resolve/resolve.js';
import { RequestInput } from '../../app/rules/resolve/rule-input.js';
import type { Rule } from '../../app/rules/rule.js';
import type { AskedLimit } from './asked-limit.js';
import { reasons } from './reasons.js';

/** Resolves the checks of limits for a request, as a real check does, but without rejecting the request or warning about it. */
export class ExplainedRequest extends RequestInput {
  private readonly missing = new Map<Rule, Pick<AskedLimit, 'note' | 'reason' | 'refuses'>>();
  private readonly levels = new Map<readonly Rule[], LeveledInput>();

  /** The check of a limit together with all `rules` that are checked in the same call. */
  async asked(rule: Rule, rules: readonly Rule[]): Promise<AskedLimit> {
    let levels = this.levels.get(rules);
    if (levels === undefined) this.levels.set(rules, (levels = new LeveledInput(rules, this)));
    let option: ResolvedOption = 'skip';
    try {
      const resolved = await resolve(rule, this, levels, (next) => (option = next));
      if (resolved === 'skip') return { status: 'skip', limit: rule.limit, reason: reasons.skips() };
      if (resolved === 'no key') return { status: 'no key', limit: rule.limit, ...this.missing.get(rule) };
      const { limit, identity, cost, priority } = resolved;
      const known = { limit, identity, note: this.missing.get(rule)?.note };
      if (limit.off) return { status: 'off', ...known, reason: reasons.isOff() };
      return { status: 'asked', ...known, cost, priority };
    } catch (error) {
      return { status: 'fails', limit: rule.limit, reason: reasons.functionFailed(option, error) };
    }
  }

  /** Doesn't log the error, since the explanation contains it. */
  protected override reported(_rule: Rule, _option: string, error: unknown): unknown {
    return error;
  }

  protected override withoutKey(rule: Rule, by: BoundKey): string | undefined {
    const { settings } = rule;
    const outcome = missingKeyOutcome(rule, by, this.parts);
    const identity = outcome === 'ip' ? settings.byAddress(this.context, this.parts) : undefined;
    if (identity === undefined) {
      const reason = reasons.lacksKey(outcome, by, this.context.getType<string>());
      this.missing.set(rule, { reason, refuses: outcome.startsWith('refuse') });
    } else if (by === settings.key) {
      this.missing.set(rule, { note: reasons.countsAddress(by.noun) });
    }
    return identity;
  }
}
