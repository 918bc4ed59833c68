import type { Algorithm } from '../../../engine/algorithms/algorithm.js';
import { asksForAnchor, readAnchor } from '../../../engine/algorithms/anchor.js';
import type { AlgorithmOptions } from '../../../engine/algorithms/index.js';
import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import type { FeaturedLimit, LimitFeature, MetBy, Versions } from '../../../engine/limits/limit-feature.js';
import { Bare } from '../../../engine/util/bare.js';
import { anchorMessages } from './messages.js';

/** The versions of one limit whose windows begin where the request says. */
export class LimitAnchors extends Bare implements LimitFeature {
  readonly name = 'anchors';
  readonly ofOptions = true;
  /** Counts where no anchor is known: what only looks, or gives back, stays with the stored window. */
  readonly variant: Algorithm;
  readonly versions: Versions;

  constructor({ name, algorithm, options }: FeaturedLimit) {
    super();
    this.variant = algorithm.following as Algorithm;
    const { timezone = 'UTC' } = options as { readonly timezone?: string };
    /** Milliseconds since the epoch, or `null` for the calendar's own windows. */
    const read = ({ anchor }: MetBy): number | null => {
      if (anchor === null) return null;
      const at = readAnchor(anchor, timezone);
      if (at === undefined) throw new RateLimitArgumentError(anchorMessages.wrongAnchor(name, anchor));
      return at;
    };
    this.versions = {
      idOf: (by) => (by['anchor'] === undefined ? undefined : String(read(by))),
      make(_, by) {
        const anchor = read(by);
        return { options: (written) => withAnchor(written, anchor), metBy: { anchor } };
      },
      notListed: (location) => anchorMessages.noAnchorHere(location, name),
    };
  }
}

/** Options with a fixed anchor, if a function gave it. */
function withAnchor(options: AlgorithmOptions, anchor: number | null): AlgorithmOptions {
  if (!asksForAnchor(options)) return options;
  const { anchor: _, ...rest } = options;
  return anchor === null ? rest : { ...rest, anchor };
}
