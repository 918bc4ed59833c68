import ms from 'ms';
import { algorithms } from '../algorithms/index.js';
import { cliMessages } from '../errors/messages/cli.js';
import { show } from '../errors/wording.js';
import { blockTerms } from '../limits/block-terms.js';
import type { LimitDefinition } from '../config/limit-definition.js';
import { CompiledLimit } from '../limits/compiled-limit.js';
import { ALGORITHM_KINDS } from '../policy/algorithm-kinds.js';
import { UsageError } from './command.js';

/** A limit on the command line: `algo:rate/interval[,option=value...][@name]`. */
export interface LimitSpec {
  readonly limit: CompiledLimit;
  /** The key of this limit only, if it has one. */
  readonly key: string | undefined;
}

const FORM = 'algo:rate/interval[,option=value...][@name], such as gcra:60/1s,burst=120@api';
const SPEC = /^([^:]*):([^/,@]*)\/([^,@]*)((?:,[^@]*)?)(?:@(.*))?$/s;
const NAME = /^[\x20-\x7e]{1,128}$/;

/** Options that come before the first comma. */
const LEADING = ['rate', 'interval', 'period', 'limit', 'ttl'];
/** Options with structured values, which need a policy file. */
const STRUCTURED = ['warmUp', 'shares'];
/** Options of every limit. */
const COMMON = ['blockFor', 'forgetAfter', 'mode', 'key'];
/** Separates the steps of blocks. */
const STEP = '/';

type OptionValue = number | string | true;

/** A number without a sign, such as 60 or 0.5. */
const NUMBER = /^\d{1,16}(?:\.\d{1,16})?$/;

/** A limit as read from the command line. */
interface ReadSpec {
  /** The algorithm and its options, not validated yet. */
  readonly options: Readonly<Record<string, OptionValue>>;
  readonly given: ReadonlyMap<string, string>;
  readonly name: string | undefined;
  readonly mode: 'enforce' | 'shadow';
}

/** Reads a limit. Throws `UsageError` or `RateLimitConfigError`, which name what it got and what it wants. */
export function readLimit(spec: string): LimitSpec {
  const [, algo = ''] = SPEC.exec(spec) ?? [];
  if (algorithms.get(algo)?.holding !== undefined) throw new UsageError(cliMessages.notSimulated(spec, algo));
  const { options, given, name, mode } = readSpec(spec, COMMON);
  const location = `--limit ${show(spec)}`;
  const blocks = blockTerms(readBlocks(given), location);
  const settings = { location, name, shadow: mode === 'shadow', ...blocks };
  return { limit: new CompiledLimit(options as never, settings), key: given.get('key') };
}

/** Reads a limit as an app defines it, without who it counts. */
export function readDefinition(spec: string): LimitDefinition {
  const { options, given, name, mode } = readSpec(spec, ['blockFor', 'forgetAfter', 'mode']);
  return {
    ...options,
    ...(name === undefined ? {} : { name }),
    ...readBlocks(given),
    mode,
  } as unknown as LimitDefinition;
}

function readBlocks(given: ReadonlyMap<string, string>): { blockFor?: string | string[]; forgetAfter?: string } {
  const steps = given.get('blockFor')?.split(STEP);
  const forgetAfter = given.get('forgetAfter');
  return {
    ...(steps === undefined ? {} : { blockFor: steps.length === 1 ? steps[0]! : steps }),
    ...(forgetAfter === undefined ? {} : { forgetAfter }),
  };
}

function readSpec(spec: string, common: readonly string[]): ReadSpec {
  const [, algo = '', rate = '', interval = '', list = '', name] = SPEC.exec(spec) ?? [];
  const algorithm = algorithms.get(algo);
  if (!SPEC.test(spec)) throw new UsageError(cliMessages.wrongLimit(spec, FORM));
  const own = (algorithm?.options ?? []).filter((option) => !LEADING.includes(option) && !STRUCTURED.includes(option));
  const given = readOptions(spec, list, algorithm === undefined ? undefined : [...own, ...common]);
  const main = mainOptions(algorithm?.options ?? [], rate, interval);
  const options = { algo, ...main, ...Object.fromEntries(ownOf(given)) };
  if (name !== undefined && !NAME.test(name)) {
    throw new UsageError(cliMessages.wrongLimitOption(spec, 'name', name, '1 to 128 printable ASCII characters'));
  }
  const mode = given.get('mode') ?? 'enforce';
  if (mode !== 'enforce' && mode !== 'shadow') {
    throw new UsageError(cliMessages.wrongLimitOption(spec, 'mode', mode, 'one of enforce, shadow'));
  }
  return { options, given, name, mode };
}

/** The part before the first comma, under the names that the algorithm has for it. */
function mainOptions(known: readonly string[], rate: string, interval: string): Record<string, number | string> {
  const units = known.includes('limit') ? { limit: numeric(rate) } : { rate: numeric(rate) };
  if (known.includes('ttl')) return { ...units, ttl: ofOne(interval) };
  return { ...units, ...(known.includes('period') ? { period: interval } : { interval: ofOne(interval) }) };
}

/** Reads all limits of a command line. Two of one name would share a counter. */
export function readLimits(specs: readonly string[]): LimitSpec[] {
  const limits = specs.map(readLimit);
  const names = new Set<string>();
  for (const { limit } of limits) {
    if (names.has(limit.name)) throw new UsageError(cliMessages.sameLimitTwice(limit.name));
    names.add(limit.name);
  }
  return limits;
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

function ownOf(given: ReadonlyMap<string, string>): [string, OptionValue][] {
  return [...given]
    .filter(([option]) => !COMMON.includes(option))
    .map(([option, text]): [string, OptionValue] => [option, valueOf(option, text)]);
}

/** The value of a text: a number or `true`, unless the option wants text. */
function valueOf(option: string, text: string): OptionValue {
  if (ALGORITHM_KINDS[option]?.isRight(text) === true) return text;
  if (text === 'true') return true;
  return NUMBER.test(text) ? Number(text) : text;
}

/** A number; otherwise the text, for the message that refuses it. */
function numeric(text: string): number | string {
  return /^\d{1,16}$/.test(text) ? Number(text) : text;
}

/** A duration in which `s` means one second. */
export function ofOne(text: string): string {
  const one = `1${text}`;
  return /^[a-z]+$/i.test(text) && ms(one as ms.StringValue) !== undefined ? one : text;
}
