import { consoleMessages } from '../../engine/errors/messages/console.js';
import { shownUnitsOf, tenantsNow } from '../../storage/features/index.js';
import { identityOfShown } from '../../engine/limits/hierarchy.js';
import type { StoreLayer } from '../../storage/stores/layers/store-layer.js';
import { hashOf } from '../../storage/telemetry/decision-event.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import type { Rule } from '../../app/rules/rule.js';
import type { Tenants, Tree, TreeNode } from '../api.js';
import type { CatalogEntry, LimitCatalog } from '../limit-catalog.js';
import type { ShownNames } from '../shown-names.js';
import type { TopLists } from './top-lists.js';

/** Maximum number of counters in a tree, and of counters of a limit whose tenants are listed. */
const MOST_NODES = 40;
const MOST_COUNTERS = 5;
/** A counter of this identity exists without any known client. */
const GLOBAL = 'global';

/** A counter of a hierarchy, before it is read. */
interface Place {
  readonly entry: CatalogEntry;
  /** The identities that lead to it, as displayed. */
  readonly path: readonly string[];
}

/** Finds the parts of a limit's units: in hierarchies, and among tenants. Charges nothing. */
export class LimitParts {
  constructor(
    private readonly catalog: LimitCatalog,
    private readonly top: TopLists,
    private readonly store: StoreLayer,
    private readonly names: ShownNames,
    private readonly now: () => number,
  ) {}

  /** The hierarchy of a limit, with recently used counters. Never rejects because of Redis. */
  async tree({ label, rule }: CatalogEntry): Promise<Tree> {
    const root = rule.ancestors.at(-1) ?? rule;
    const family = this.catalog.entries().filter((each) => each.rule === root || each.rule.ancestors.includes(root));
    const { keys, since, coverage, problem } = await this.top.keysOf(family.map((each) => each.label));
    const places = new Map<string, Place>();
    let more = false;
    for (const [of, identity] of keys) {
      const entry = family.find((each) => each.label === of)!;
      for (const place of this.pathTo(entry, identity, family)) {
        const id = idOf(place.entry.rule, place.path);
        if (!places.has(id) && places.size >= MOST_NODES) more = true;
        else places.set(id, place);
      }
    }
    const nodes = await Promise.all([...places.values()].map((place) => this.node(place)));
    return { at: Math.round(this.now()), limit: label, nodes: inOrder(nodes), more, since, coverage, problem };
  }

  /** The tenants of a limit, for recently used counters. Never rejects because of Redis. */
  async tenants({ label, rule }: CatalogEntry): Promise<Tenants> {
    const identities =
      rule.settings.key.given === GLOBAL
        ? [GLOBAL]
        : (await this.top.keysOf([label])).keys.slice(0, MOST_COUNTERS).map(([, identity]) => identity);
    const counters: Tenants['counters'] = [];
    let problem: string | undefined;
    for (const identity of identities) {
      const limit = rule.limitFor(identity);
      try {
        const found = await tenantsNow(this.store, { limit, identity });
        if (found === undefined) continue;
        const tenants = found.tenants.map(({ id, ...tenant }) => ({
          id: hashOf(id),
          name: this.names.isPlain ? id : undefined,
          ...tenant,
        }));
        counters.push({ id: hashOf(identity), key: this.names.key(identity), ...found, tenants });
      } catch (error) {
        problem = consoleMessages.unreadTenants(reasonOf(error));
      }
    }
    return { at: Math.round(this.now()), limit: label, counters, problem };
  }

  /** A counter and its parents, the root first; none if they aren't known in plain text. */
  private pathTo(entry: CatalogEntry, identity: string, family: readonly CatalogEntry[]): Place[] {
    const above = entry.rule.ancestors.toReversed();
    const steps = above.length === 0 ? [identity] : identity.split('/');
    if (steps.length <= above.length || steps.some((step) => step === '' || step.startsWith('#'))) return [];
    const places = above.flatMap((rule, at): Place[] => {
      const of = family.find((each) => each.rule === rule);
      return of === undefined ? [] : [{ entry: of, path: steps.slice(0, at + 1) }];
    });
    const own = steps.slice(above.length).join('/');
    return [...places, { entry, path: [...steps.slice(0, above.length), own] }];
  }

  private async node({ entry: { label, rule }, path }: Place): Promise<TreeNode> {
    const shown = path.join('/');
    const identity = path.length === 1 ? shown : identityOfShown(shown, path.length - 1)!;
    const limit = rule.usualLimit(identity);
    const [parent] = rule.ancestors;
    const about = {
      id: idOf(rule, path),
      parent: parent && idOf(parent, path.slice(0, -1)),
      limit: label,
      key: this.names.key(path.at(-1)!),
    };
    try {
      // Read on its own, since in a check together with its parents their remaining units would also count.
      const entries = [{ limit, identity, cost: 1 }];
      const [decision] = await this.store.decided({ entries, peek: true, strict: true });
      const { quota, remaining } = decision!;
      const used = quota - remaining;
      const { above = 0 } = shownUnitsOf(limit);
      return { ...about, quota, used, borrowed: above === 0 ? 0 : Math.max(0, used - (quota - above)) };
    } catch (error) {
      return { ...about, quota: limit.quota, used: null, borrowed: 0, unread: reasonOf(error) };
    }
  }
}

function idOf({ name }: Rule, path: readonly string[]): string {
  return hashOf(`${name}\n${path.join('/')}`);
}

/** Parents before their children, the most used first. */
function inOrder(nodes: readonly TreeNode[]): TreeNode[] {
  const known = new Set(nodes.map(({ id }) => id));
  const childrenOf = (id: string | undefined): TreeNode[] =>
    nodes
      .filter(({ parent }) => (parent !== undefined && known.has(parent) ? parent : undefined) === id)
      .toSorted((one, other) => shareOf(other) - shareOf(one))
      .flatMap((node) => [node, ...childrenOf(node.id)]);
  return childrenOf(undefined);
}

function shareOf({ used, quota }: TreeNode): number {
  return quota === 0 ? 0 : (used ?? 0) / quota;
}
