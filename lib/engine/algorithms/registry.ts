import type { OptionRow, OptionRows } from '../options/option-row.js';
import type { Algorithm, Variant } from './algorithm.js';

type OptionalParts = {
  [Part in keyof Algorithm as object extends Pick<Algorithm, Part> ? Part : never]-?: undefined;
};

/**
 * Parts that an algorithm leaves out are its own `undefined` properties. So a property added to `Object.prototype` is not taken
 * for a capability, and all algorithms are objects of one shape, which are faster to read.
 */
const ABSENT: OptionalParts = {
  extraKeys: undefined,
  moreKeys: undefined,
  script: undefined,
  variants: undefined,
  following: undefined,
  scriptPrefix: undefined,
  work: undefined,
  pace: undefined,
  reopen: undefined,
  bytes: undefined,
  withQuota: undefined,
  scaleUsed: undefined,
  keepFor: undefined,
  refuse: undefined,
  remainingForAll: undefined,
  sharing: undefined,
  reservation: undefined,
  queue: undefined,
  leases: undefined,
  holds: undefined,
  planning: undefined,
  varying: undefined,
  prefetch: undefined,
  granting: undefined,
  notes: undefined,
  beyond: undefined,
  borrowing: undefined,
  warming: undefined,
  adapting: undefined,
  history: undefined,
};

/** The algorithms by name. */
export class AlgorithmRegistry {
  private readonly byName = new Map<unknown, Algorithm>();
  private rows: OptionRows | undefined;

  /** @param variants replace these algorithms, and those that are added, if an option is set */
  constructor(
    algorithms: readonly Algorithm[],
    private readonly variants: readonly Variant[] = [],
  ) {
    for (const algorithm of algorithms) this.add(algorithm);
  }

  /** The values of `algo`. */
  get names(): string[] {
    return this.namesOf(() => true);
  }

  /** The algorithm with a name, if there is one. */
  get(name: unknown): Algorithm | undefined {
    return this.byName.get(name);
  }

  /** The algorithm that counts a limit with these options, if any. */
  for(options: { readonly algo: unknown }): Algorithm | undefined {
    const algorithm = this.get(options.algo);
    if (algorithm?.variants === undefined) return algorithm;
    const given = Object.entries(algorithm.variants).find(
      ([option]) => (options as Readonly<Record<string, unknown>>)[option] !== undefined,
    );
    return given === undefined ? algorithm : given[1];
  }

  /** The names of the algorithms that have one of these capabilities. */
  withAny(...capabilities: readonly (keyof OptionalParts)[]): string[] {
    return this.namesOf((algorithm) => capabilities.some((capability) => algorithm[capability] !== undefined));
  }

  /** Every option of any algorithm, with the definition of the first one that has it. */
  get options(): OptionRows {
    if (this.rows === undefined) {
      const rows = new Map<string, OptionRow>();
      for (const { options } of this.all) {
        for (const [option, row] of Object.entries(options)) if (!rows.has(option)) rows.set(option, row);
      }
      this.rows = Object.fromEntries(rows);
    }
    return this.rows;
  }

  /** The names of the algorithms that have an option. */
  withOption(option: string): string[] {
    return this.namesOf(({ options }) => Object.hasOwn(options, option));
  }

  /** The names of the algorithms that match a condition. */
  namesOf(isSo: (algorithm: Algorithm) => boolean): string[] {
    return this.all.filter(isSo).map(({ name }) => name);
  }

  /** Adds an algorithm. */
  add(algorithm: Algorithm): void {
    const variants = { ...algorithm.variants };
    let { options } = algorithm;
    for (const variant of this.variants) {
      const counted = variant.of(algorithm);
      if (counted === undefined) continue;
      options = { ...options, ...variant.options };
      for (const option of Object.keys(variant.options)) variants[option] = counted;
    }
    for (const [option, counted] of Object.entries(variants)) variants[option] = wholeOf({ ...counted, options });
    this.byName.set(algorithm.name, { ...wholeOf(algorithm), options, variants });
    this.rows = undefined;
  }

  private get all(): Algorithm[] {
    return [...this.byName.values()];
  }
}

/** The algorithm with all parts, including those that it leaves out. */
function wholeOf(algorithm: Algorithm): Algorithm {
  const following = algorithm.following && { ...ABSENT, ...(algorithm.following as Algorithm) };
  return { ...ABSENT, ...algorithm, following } as Algorithm;
}
