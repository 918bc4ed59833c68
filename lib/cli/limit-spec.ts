import ms from 'ms';
import { algorithms } from '../engine/algorithms/index.js';
import { cliMessages } from '../engine/errors/messages/cli.js';
import { show } from '../engine/errors/wording.js';
import { limitName } from '../engine/limits/limit-settings.js';
import { dataOf, type OptionRow, requiredOf } from '../engine/options/option-row.js';
import { algorithmOptions } from '../app/rules/common-options.js';
import { blockTerms } from '../engine/limits/block-terms.js';
import type { ExactLimit } from '../app/config/limit-definition.js';
import { checkLimit, commonOptionsThat, isCommon, limitOptions } from '../app/config/limit-options.js';
import { CompiledLimit } from '../engine/limits/compiled-limit.js';
import { UsageError } from './command.js';

/** A limit on the command line: `algo:rate/interval[,option=value...][@name]`. */
export interface LimitSpec {
  readonly limit: CompiledLimit;
  /** The key of this limit, if it has its own. */
  readonly key: string | undefined;
}

const FORM = 'algo:rate/interval[,option=value...][@name], such as gcra:60/1s,burst=120@api';
const SPEC = /^([^:]*):([^/,@]*)\/([^,@]*)((?:,[^@]*)?)(?:@(.*))?$/s;

/** Options that every simulated limit supports. For an explained limit, the key is an argument. */
const SIMULATED: readonly string[] = commonOptionsThat(({ onCommandLine }) => onCommandLine === true);
const EXPLAINED = [...SIMULATED.filter((option) => option !== 'key'), 'scope'];
/** Separates the steps of blocks. */
const STEP = '/';
const modes = limitOptions.mode.kind;

type OptionValue = number | string | string[] | true;

/** A number without a sign, such as 60 or 0.5. */
const NUMBER = /^\d{1,16}(?:\.\d{1,16})?$/;

/** Reads a limit. Throws `UsageError` or `RateLimitConfigError`, whose messages contain the expected and the received value. */
export function readLimit(spec: string): LimitSpec {
  const [, algo = ''] = SPEC.exec(spec) ?? [];
  if (algorithms.get(algo)?.leases !== undefined) throw new UsageError(cliMessages.notSimulated(spec, algo));
  const definition = readSpec(spec, SIMULATED);
  return { limit: compiled(definition, `--limit ${show(spec)}`), key: definition.key as string | undefined };
}

/** Checks a definition, and makes a limit of it. Throws `RateLimitConfigError`. */
export function compiled(definition: ExactLimit, location: string, namespace = ''): CompiledLimit {
  checkLimit(definition, location);
  const { name, mode } = definition;
  const terms = blockTerms(definition, location);
  const settings = { location, name, namespace, shadow: mode === 'shadow', ...terms };
  return new CompiledLimit(algorithmOptions(definition), settings);
}

/** Reads a limit as an app defines it, without its key. */
export function readDefinition(spec: string): ExactLimit {
  const definition = readSpec(spec, EXPLAINED);
  const { scope } = definition as { readonly scope?: string };
  if (scope !== undefined && scope !== 'world') {
    const expected = "'world', or to be left out: others count in their region";
    throw new UsageError(cliMessages.wrongLimitOption(spec, 'scope', scope, expected));
  }
  return definition;
}

function readSpec(spec: string, common: readonly string[]): ExactLimit {
  const [, algo = '', rate = '', interval = '', list = '', name] = SPEC.exec(spec) ?? [];
  const algorithm = algorithms.get(algo);
  if (!SPEC.test(spec)) throw new UsageError(cliMessages.wrongLimit(spec, FORM));
  const rows = algorithm?.options ?? {};
  // Before the first comma are the required options of the algorithm: units and a time.
  const [units = 'rate', time = 'interval'] = requiredOf(rows);
  // Only a policy file can contain objects.
  const own = Object.entries(rows)
    .filter(([, { kind, required }]) => required !== true && kind.options === undefined)
    .map(([option]) => option);
  const given = readOptions(spec, list, algorithm === undefined ? undefined : [...own, ...common]);
  if (name !== undefined && !limitName.isValid(name)) {
    throw new UsageError(cliMessages.wrongLimitOption(spec, 'name', name, limitName.expected));
  }
  const mode = given.get('mode') ?? 'enforce';
  if (!modes.isValid(mode)) throw new UsageError(cliMessages.wrongLimitOption(spec, 'mode', mode, modes.expected));
  return {
    algo,
    // Any other text is kept for the error message.
    [units]: /^\d{1,16}$/.test(rate) ? Number(rate) : rate,
    [time]: time === 'period' ? interval : ofOne(interval),
    ...Object.fromEntries([...given].map(([option, text]) => [option, valueOf(option, text, rows[option])])),
    ...(name !== undefined && { name }),
    mode,
  } as unknown as ExactLimit;
}

/** Throws if two limits have the same name: they would share a counter. */
export function assertNames(limits: readonly LimitSpec[]): void {
  const names = new Set<string>();
  for (const { limit } of limits) {
    if (names.has(limit.name)) throw new UsageError(cliMessages.sameLimitTwice(limit.name));
    names.add(limit.name);
  }
}

/** The options by name. For an unknown algorithm all options are accepted, since its name is the mistake to report. */
function readOptions(spec: string, list: string, known: readonly string[] | undefined): Map<string, string> {
  const given = new Map<string, string>();
  for (const part of list.split(',').slice(1)) {
    const [, option = '', value = ''] = /^([^=]*)=(.*)$/s.exec(part) ?? [];
    if (option === '') throw new UsageError(cliMessages.wrongLimit(spec, FORM));
    if (option === 'share') throw new UsageError(cliMessages.sharesNotSaid(spec));
    if (known?.includes(option) === false) {
      throw new UsageError(cliMessages.unknownLimitOption(spec, option, known));
    }
    if (given.has(option)) throw new UsageError(cliMessages.limitOptionTwice(spec, option));
    given.set(option, value);
  }
  return given;
}

/** Converts a text to a value: steps, a number or `true`, unless the option takes that text. */
function valueOf(option: string, text: string, row: OptionRow | undefined): OptionValue {
  if (isCommon(option)) {
    if (option === 'blockFor' && text.includes(STEP)) return text.split(STEP);
    return text === 'true' && dataOf(limitOptions[option].kind)?.isValid(true) === true ? true : text;
  }
  if (row !== undefined && dataOf(row.kind)?.isValid(text) === true) return text;
  if (text === 'true') return true;
  return NUMBER.test(text) ? Number(text) : text;
}

/** Converts a duration such as `s` to `1s`. */
export function ofOne(text: string): string {
  const one = `1${text}`;
  return /^[a-z]+$/i.test(text) && ms(one as ms.StringValue) !== undefined ? one : text;
}
