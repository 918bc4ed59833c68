import { DURATION_UNITS, milliseconds } from '../../engine/options/values.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { show } from '../../engine/errors/wording.js';
import { type CommandOptions, InputError, type ReadArguments, refuseOptions, UsageError } from '../command.js';
import { assertNames, compiled, type LimitSpec, ofOne, readLimit } from '../limit-spec.js';
import { assertKeySyntax, readFilters } from './logged-request.js';
import { formatNamed } from './formats.js';
import type { Generated } from './generator.js';
import type { LogSettings } from './log-input.js';
import { SimulatedLimit } from './simulated-limit.js';
import { algorithms } from '../../engine/algorithms/index.js';
import { type Measure, readMeasure } from '../../app/config/measured-cost.js';
import type { ExactLimit } from '../../app/config/limit-definition.js';
import { FilePolicySource } from '../../app/policy/sources.js';
import { showProblem } from '../../app/policy/problems.js';
import { isPolicyPath } from '../../app/policy/read-text.js';
import { algorithmOptions } from '../../app/rules/common-options.js';

/** Keys of limits that are also fields of logs. */
const FIELDS = ['ip', 'user', 'global'];

/** A limit of a policy, with its name in the report. */
interface PolicyLimitSpec extends LimitSpec {
  readonly spec: string;
  /** How the bytes of responses are charged, if they are. */
  readonly measure?: Measure | undefined;
}

/** The limits of a policy file that can be simulated: those with an algorithm, except `concurrency` limits and limits that are off. */
async function policyLimits(path: string): Promise<PolicyLimitSpec[]> {
  if (!isPolicyPath(path)) throw new UsageError(cliMessages.noPolicyFile(path));
  const reading = await new FilePolicySource(path).read();
  if ('problems' in reading) throw new InputError(reading.problems.map(showProblem).join('; '));
  const found: PolicyLimitSpec[] = [];
  for (const [name, { options, mode, place }] of reading.policy.limits) {
    const { algo } = options;
    if (algo === undefined || mode === 'off' || algorithms.get(algo)?.leases !== undefined) continue;
    const definition = { ...options, name, mode } as ExactLimit;
    const limit = compiled(definition, place);
    const { key, cost } = definition;
    const measured = readMeasure(cost, algorithms.get(algo), place);
    const own = typeof key === 'string' && FIELDS.includes(key) ? key : undefined;
    const spec = algorithms.get(algo)!.defaultName(algorithmOptions(definition) as never);
    found.push({ limit, key: own, spec, measure: measured?.by === 'bytes' ? measured : undefined });
  }
  if (found.length === 0) throw new InputError(cliMessages.nothingToSimulate(path));
  return found;
}

export const SIMULATE_OPTIONS: CommandOptions = {
  limit: { value: '<limit>', repeats: true, help: 'A limit' },
  policy: {
    value: '<file>',
    help: 'Simulates the limits of a policy file, alone or with those of --limit. Their keys are ip, user, global, or that of --key',
  },
  path: { value: '<path>', repeats: true, help: "Only requests of this path, such as '/api/*'" },
  status: { value: '<status>', repeats: true, help: 'Only requests with this status code, such as 404 or 2xx' },
  key: { value: '<key>', help: 'ip, global, a field, or a template such as {tenant}:{user} (default: ip)' },
  cost: { value: '<field>', help: 'The field with the units of a request (default: 1 unit each)' },
  time: { value: '<field>', help: 'The field with the time, for ndjson (default: detected)' },
  format: { value: '<format>', help: 'ndjson, nginx, apache, combined or common (default: detected)' },
  reorder: { value: '<time>', help: 'How late a line may be and still be sorted by its time (default: 10s)' },
  generate: { value: '<traffic>', help: 'Generates requests instead of reading a log: poisson:80/s or constant:80/s' },
  for: { value: '<time>', help: 'How long to generate requests (default: 1h)' },
  seed: { value: '<number>', help: 'Seed of the random requests (default: 1)' },
  keys: { value: '<number>', help: 'Number of keys that generated requests have (default: 1)' },
  'max-keys': { value: '<number>', help: 'Maximum number of keys in memory (default: 100000)' },
  json: { help: 'Prints JSON instead of a table' },
  svg: { value: '<file>', help: 'Also writes a chart of allowed and rejected requests' },
};

type Values = ReadArguments['values'];

const OF_LOGS = ['key', 'cost', 'time', 'format', 'reorder', 'path', 'status'];
const OF_GENERATED = ['for', 'seed', 'keys'];

const MAX_KEYS = 100_000;
const REORDER = '10s';
/** Maximum average number of requests to generate. */
const MOST_GENERATED = 1e9;

/** The settings of a command line. */
export interface SimulateSettings {
  readonly limits: readonly SimulatedLimit[];
  /** The keys of the limits, without duplicates. */
  readonly keys: readonly string[];
  readonly maxKeys: number;
  readonly input: LogFile | GeneratedInput;
  readonly json: boolean;
  readonly svg: string | undefined;
}

/** A log to read: `-` is standard input. */
interface LogFile {
  readonly kind: 'log';
  readonly path: string;
  readonly log: LogSettings;
}

interface GeneratedInput {
  readonly kind: 'generated';
  readonly spec: string;
  readonly generated: Generated;
}

/** Reads a command line. Throws `UsageError` or `RateLimitConfigError` before the log is read. */
export async function readSettings(read: ReadArguments): Promise<SimulateSettings> {
  const { values, lists, switches } = read;
  const specs = lists.get('limit') ?? [];
  const policy = values.get('policy');
  if (specs.length === 0 && policy === undefined) throw new UsageError(cliMessages.missingOption('limit', LIMIT));
  const key = values.get('key') ?? 'ip';
  const given = specs.map((spec) => ({ ...readLimit(spec), spec }));
  const found: PolicyLimitSpec[] = [...given, ...(policy === undefined ? [] : await policyLimits(policy))];
  assertNames(found);
  const keys = [...new Set(found.map((each) => each.key ?? key))];
  for (const each of keys) assertKeySyntax(each);
  const places = new Map<string, number>();
  const limits = found.map(({ limit, key: own = key, spec, measure }) => {
    const place = places.get(own) ?? 0;
    places.set(own, place + 1);
    return new SimulatedLimit(limit, spec, keys.indexOf(own), place, measure);
  });
  const maxKeys = wholeNumber(values, 'max-keys', MAX_KEYS, 1, 10_000_000);
  const countsBytes = found.some(({ measure }) => measure !== undefined);
  const input = inputOf(read, keys, countsBytes);
  const svg = values.get('svg');
  if (svg === '') throw new UsageError(cliMessages.wrongOption('svg', svg, 'a file'));
  if (svg !== undefined && input.kind === 'log' && input.path === svg)
    throw new UsageError(cliMessages.svgIsInput(svg));
  return { limits, keys, maxKeys, input, json: switches.has('json'), svg };
}

const LIMIT = 'at least one, such as --limit gcra:60/1s';

/** The requests: generated ones, or those of a log. */
function inputOf(read: ReadArguments, keys: readonly string[], bytes: boolean): LogFile | GeneratedInput {
  const { values, lists, positionals } = read;
  const spec = values.get('generate');
  const inputs = [...positionals, ...(spec === undefined ? [] : [`--generate ${spec}`])];
  if (inputs.length > 1) throw new UsageError(cliMessages.twoInputs(inputs));
  if (spec !== undefined) {
    refuseOptions(read, OF_LOGS, 'a log');
    const other = keys.find((key) => key !== 'ip' && key !== 'global');
    if (other !== undefined) throw new UsageError(cliMessages.keyOfGenerated(other));
    return { kind: 'generated', spec, generated: generatedOf(spec, values) };
  }
  const [path] = positionals;
  if (path === undefined || path === '') throw new UsageError(cliMessages.noInput());
  refuseOptions(read, OF_GENERATED, "'--generate'");
  const format = values.get('format');
  // Reports an invalid name before the log is read.
  if (format !== undefined) formatNamed(format);
  const filters = readFilters(lists.get('path') ?? [], lists.get('status') ?? []);
  const wanted = { keys, cost: values.get('cost'), bytes, time: values.get('time'), filters };
  const log = { format, wanted, reorderWindow: durationOf(values, 'reorder', REORDER, 0) };
  return { kind: 'log', path, log };
}

const GENERATE = "'poisson:' or 'constant:' and requests/interval, such as poisson:80/s";

function generatedOf(spec: string, values: Values): Generated {
  const [, arrivals, requests, interval = ''] = /^(poisson|constant):(\d{1,15}(?:\.\d{1,9})?)\/(.+)$/.exec(spec) ?? [];
  const length = milliseconds(ofOne(interval)) ?? 0;
  const rate = Number(requests) / (length * 1000);
  if (arrivals === undefined || !(rate > 0) || rate === Infinity) {
    throw new UsageError(cliMessages.wrongOption('generate', spec, GENERATE));
  }
  const duration = durationOf(values, 'for', '1h', 1);
  if (rate * duration > MOST_GENERATED) {
    throw new UsageError(cliMessages.tooManyGenerated(show(spec), values.get('for') ?? '1h', MOST_GENERATED));
  }
  return {
    arrivals: arrivals as Generated['arrivals'],
    rate,
    duration,
    seed: wholeNumber(values, 'seed', 1, 0, 2 ** 32 - 1),
    keys: wholeNumber(values, 'keys', 1, 1, 10_000_000),
  };
}

function durationOf(values: Values, option: string, usual: string, least: number): number {
  const text = values.get(option) ?? usual;
  const micros = Math.round((milliseconds(text) ?? NaN) * 1000);
  if (!(micros >= least)) {
    const expected = `a duration such as '10s', '1m', '1h' ${DURATION_UNITS}, at most 1 year${least > 0 ? ' and more than 0' : ''}`;
    throw new UsageError(cliMessages.wrongOption(option, text, expected));
  }
  return micros;
}

function wholeNumber(values: Values, option: string, usual: number, min: number, max: number): number {
  const text = values.get(option) ?? String(usual);
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(cliMessages.wrongOption(option, text, `a whole number >= ${min} and <= ${max}`));
}
