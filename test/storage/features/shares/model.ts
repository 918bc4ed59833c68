import type { CompiledLimit } from '../../../../lib/testing/store/index.js';
import type { ShareParameters } from '../../../../lib/storage/features/shares/fair-share.js';

const SLICES = 11;
const ACTIVE = 13;

interface Request {
  readonly slice: number;
  readonly cost: number;
  readonly allowed: boolean;
}

interface Asker {
  readonly requests: Request[];
  weight: number;
  /** As of its last request. */
  slice: number;
  expected: number;
}

/** Shares by their definition: keeps every request of every tenant, and sums up anew for each question. */
export class ShareModel {
  private readonly tenants = new Map<string, Asker>();
  private readonly parameters: ShareParameters;

  constructor(private readonly limit: CompiledLimit) {
    this.parameters = limit.parameters as ShareParameters;
  }

  /** Whether a tenant may take units of a limit that has so many left. */
  ask(id: string, weight: number, cost: number, left: number, micros: number): boolean {
    const { quota } = this.limit;
    const { shareUnits, shareLength, floor } = this.parameters;
    const slice = Math.floor(micros / shareLength);
    const asker = this.tenants.get(id) ?? { requests: [], weight, slice, expected: 0 };
    const others = [...this.tenants.values()].filter((each) => each !== asker && slice - each.slice < ACTIVE);
    const weights = others.reduce((sum, each) => sum + each.weight, weight);
    const proportion = (units: number, own: number) =>
      Number((BigInt(units) * BigInt(own) + BigInt(weights) - 1n) / BigInt(weights));
    const partOf = (own: number) => Math.min(shareUnits, Math.max(floor, proportion(shareUnits, own)));
    const part = partOf(weight);
    const atOnce = shareUnits === quota ? part : proportion(quota, weight);
    const claimed = others.reduce((sum, each) => {
      const most = Math.min(each.expected, partOf(each.weight));
      return sum + Math.max(0, most - unitsOf(each, slice - SLICES + 1, slice, true));
    }, 0);
    const kept = Math.max(0, Math.min(claimed, quota - Math.min(quota, atOnce)));
    const used = unitsOf(asker, slice - SLICES + 1, slice, true);
    const isOwn = used === 0 || used + cost <= part;
    const allowed = cost <= quota && cost + (isOwn ? 0 : kept) <= left;
    // Nobody waits for what never fits.
    if (cost > quota) return false;
    asker.requests.push({ slice, cost, allowed });
    const lately = unitsOf(asker, slice - SLICES + 1, slice, false);
    const before = unitsOf(asker, slice - SLICES, slice - 1, false);
    Object.assign(asker, { weight, slice, expected: Math.min(part, Math.max(lately, before)) });
    this.tenants.set(id, asker);
    return allowed;
  }
}

function unitsOf({ requests }: Asker, from: number, to: number, onlyAllowed: boolean): number {
  const within = requests.filter(({ slice, allowed }) => slice >= from && slice <= to && (allowed || !onlyAllowed));
  return within.reduce((sum, { cost }) => sum + cost, 0);
}
