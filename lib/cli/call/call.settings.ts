import { algorithms } from '../../engine/algorithms/index.js';
import { checkLimit } from '../../app/config/limit-options.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { isCost } from '../../engine/limits/arguments.js';
import { blockTerms } from '../../engine/limits/block-terms.js';
import { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { MODULE_NAMESPACE } from '../../engine/limits/limit-settings.js';
import { algorithmOptions } from '../../app/rules/common-options.js';
import { argumentsOf } from '../app/operation.js';
import { UsageError } from '../command.js';
import { readDefinition } from '../limit-spec.js';
import { type KnownOptions, readArguments } from '../options.js';

const OPTIONS: KnownOptions = {
  limit: { type: 'string' },
  everywhere: { type: 'boolean' },
  cost: { type: 'string' },
  peek: { type: 'boolean' },
  prefix: { type: 'string' },
  script: { type: 'boolean' },
};

/** One limit that is asked once. */
export interface AskedOnce {
  readonly limit: CompiledLimit;
  /** Whom it counts. */
  readonly identity: string;
  readonly cost: number;
  readonly peek: boolean;
  readonly prefix: string;
}

/** Reads the command line; nothing, if only the script is wanted. Throws `UsageError` or `RateLimitConfigError`. */
export function readSettings(args: readonly string[]): AskedOnce | undefined {
  const read = readArguments(args, OPTIONS);
  const { values, switches, positionals } = read;
  if (switches.has('script')) {
    const beside = [...values.keys(), ...switches].find((option) => option !== 'script');
    if (beside !== undefined) throw new UsageError(cliMessages.optionWithout(beside, "a limit, not beside '--script'"));
    if (positionals.length > 0) argumentsOf(read);
    return undefined;
  }
  const [name = '', identity = ''] = argumentsOf(read, 'the name of a limit', 'a key such as tenant:acme');
  const spec = values.get('limit');
  if (spec === undefined) throw new UsageError(cliMessages.missingOption('limit', 'a limit such as gcra:60/1s'));
  const limit = limitOf(name, spec, switches.has('everywhere'));
  const cost = values.get('cost') ?? '1';
  if (!/^\d+$/.test(cost) || !isCost(Number(cost))) {
    throw new UsageError(cliMessages.wrongOption('cost', cost, 'a whole number of units'));
  }
  const prefix = values.get('prefix') ?? 'sluice';
  if (!/^[^{}]+$/.test(prefix))
    throw new UsageError(cliMessages.wrongOption('prefix', prefix, 'a text without braces'));
  return { limit, identity, cost: Number(cost), peek: switches.has('peek'), prefix };
}

function limitOf(name: string, spec: string, everywhere: boolean): CompiledLimit {
  const definition = { ...readDefinition(spec), name };
  if (definition.scope === 'world') throw new UsageError(cliMessages.worldNotCalled(spec));
  const { mode, blockFor, strike, forgetAfter } = definition;
  if (algorithms.get(definition.algo)?.leases !== undefined) {
    throw new UsageError(cliMessages.notCalled(spec, definition.algo));
  }
  const location = everywhere ? `limits.${name}` : `define.${name}`;
  checkLimit(definition, location);
  return new CompiledLimit(algorithmOptions(definition), {
    location,
    name,
    namespace: everywhere ? MODULE_NAMESPACE : '',
    shadow: mode === 'shadow',
    ...blockTerms({ blockFor, strike, forgetAfter }, location),
  });
}
