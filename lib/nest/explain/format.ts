import { algorithms, type AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { HeldNow } from '../../engine/limits/estimates.js';
import type { RecentUsage } from '../../engine/limits/key-reports.js';
import type { ListedEntry } from '../../app/overrides/lists/list.js';
import type { Override } from '../../app/overrides/override.js';
import { plural, spaced } from '../../engine/util/figures.js';
import { columns, printable, showMs } from '../../engine/util/printable.js';
import type {
  CounterState,
  ExplainedCandidate,
  ExplainedDecision,
  ExplainedFunction,
  ExplainedLimit,
  ExplainedOutcome,
  ExplainedShare,
  ExplainedSubject,
  Explanation,
  LeftOutLimit,
  LimitOrigin,
} from './explanation.js';

const HEAD = ['limit', 'rate', 'key', 'left', 'resets in', 'blocked for', 'cost', 'says', 'from'];
/** The columns of text; the others are numbers. */
const LEFT = [0, 1, 2, 7, 8];
const LONGEST_CELL = 48;
const LONGEST_LINE = 200;
/** The maximum number of days of usage to list. */
const MOST_DAYS = 5;

/**
 * Formats an explanation as text for a terminal: a line with the result of the request, a table of the limits with notes on anything
 * unusual, and the limits that do not apply.
 */
export function formatExplanation(explanation: Explanation): string {
  const { subject, outcome, limits, leftOut, functions, unread } = explanation;
  const lines = [`${subjectText(subject)}: ${outcomeText(outcome)}`];
  if (unread !== undefined) lines.push(`the store could not be read: ${unread}`);
  if (limits.length > 0) lines.push('', ...table(limits, unread));
  else lines.push('', 'no limit holds');
  if (functions.length > 0) lines.push('', 'functions', ...columns(functions.map(functionRow), [0, 1]));
  if (leftOut.length > 0) lines.push('', 'left out', ...columns(leftOut.map(leftOutRow), [0, 1, 2]));
  return lines.map((line) => `${printable(line, LONGEST_LINE)}\n`).join('');
}

/** Notes go below the row that they belong to. */
function table(limits: readonly ExplainedLimit[], unread: string | undefined): string[] {
  const [head = '', ...rows] = columns([HEAD, ...limits.map(row)], LEFT);
  return [head, ...rows.flatMap((line, index) => [line, ...notes(limits[index]!, unread).map((note) => `  ${note}`)])];
}

function row(limit: ExplainedLimit): string[] {
  const { name, rate, key, state, cost, quota, origin } = limit;
  return [
    cell(name),
    rateText(rate.options),
    cell(key.identity ?? `? (${key.by})`),
    state === undefined ? '-' : `${state.remaining}/${quota}`,
    time(state?.resetAfterMs),
    time(state?.blockedForMs),
    cost === undefined ? '?' : String(cost),
    says(limit),
    originText(origin),
  ];
}

function says({ status, mode, decision }: ExplainedLimit): string {
  const isShadow = mode.mode === 'shadow';
  if (status === 'listed') return decision?.allowed === true ? 'exempts' : isShadow ? 'would deny (shadow)' : 'denies';
  if (status !== 'asked') return status === 'skip' ? 'skipped' : status;
  if (decision === undefined) return 'unknown';
  return decisionText(decision, isShadow ? 'would refuse (shadow)' : undefined);
}

/** The text of a decision. A decision that is only reported uses another word for a rejection, and does not delay. */
function decisionText({ allowed, delayMs, retryAfterMs, blocks }: ExplainedDecision, wouldRefuse?: string): string {
  if (allowed) return delayMs > 0 && wouldRefuse === undefined ? `holds for ${showMs(delayMs)}` : 'allows';
  return `${wouldRefuse ?? 'refuses'}${blocks === true ? ' and blocks' : ''}, ${waitText(retryAfterMs)}`;
}

function notes(limit: ExplainedLimit, unread: string | undefined): string[] {
  const { rate, mode, reason, key, phase, onStoreError, list, candidate, share } = limit;
  const lines: string[] = [];
  if (phase !== undefined && phase !== 'guard') lines.push(`phase ${phase}`);
  const configured = rate.configured === undefined ? '' : `, configured ${rateText(rate.configured)}`;
  if (rate.override !== undefined) lines.push(`rate by the override of ${overrideText(rate.override)}${configured}`);
  if (rate.policy !== undefined) lines.push(`rate by the policy, ${rate.policy}${configured}`);
  if (mode.override !== undefined) lines.push(`mode ${mode.mode} by the override of ${overrideText(mode.override)}`);
  else if (mode.policy !== undefined) lines.push(`mode ${mode.mode} by the policy, ${mode.policy}`);
  else if (mode.mode !== 'enforce') lines.push(`mode ${mode.mode}`);
  if (list !== undefined) lines.push(listText(list));
  if (key.note !== undefined) lines.push(key.note);
  if (share !== undefined) lines.push(shareText(share));
  lines.push(...stateTexts(limit.state));
  lines.push(...blockTexts(limit));
  if (candidate !== undefined) lines.push(candidateText(candidate));
  if (reason !== undefined && reason !== unread) lines.push(reason);
  if (onStoreError !== undefined) lines.push(`while the store fails: ${onStoreError}`);
  return lines;
}

/** A tenant may have less left than the total. */
function shareText({ by, tenant, weight }: ExplainedShare): string {
  const whose = tenant === undefined ? 'all tenants together' : `tenant '${cell(tenant)}', weight ${weight}`;
  return `shared among tenants by ${by}; what is left is that of ${whose}`;
}

function stateTexts({ regions, leases, holds, usage }: Partial<CounterState> = {}): string[] {
  return [
    ...(regions === undefined ? [] : [regionsText(regions)]),
    ...(leases === undefined ? [] : heldTexts('lease', leases)),
    ...(holds === undefined ? [] : heldTexts('reservation', holds)),
    ...(usage === undefined ? [] : usageTexts(usage)),
  ];
}

/** The leases or reservations that currently hold units. */
function heldTexts(what: string, { count, units, firstLapseMs }: HeldNow): string[] {
  if (count === 0) return [];
  const of = units === undefined ? '' : ` of ${plural(units, 'unit')}`;
  const until = firstLapseMs === undefined ? '' : `, the first lapses in ${showMs(firstLapseMs)}`;
  return [spaced(`${plural(count, what)}${of}${until}`)];
}

/** The last days with any units, the newest first. */
function usageTexts({ timezone, days, leftOut }: RecentUsage): string[] {
  if (leftOut === true) return ["usage is not recorded of all keys, because of 'maxKeys', perhaps not of this one"];
  if (days.length === 0) return [];
  const texts = days.slice(-MOST_DAYS).map(({ day, units }) => `${day} ${units}`);
  return [`charged by days (${timezone}): ${texts.toReversed().join('; ')}`];
}

/** The units granted to each region, and the age of that information. */
function regionsText(regions: NonNullable<CounterState['regions']>): string {
  const texts = regions.map(({ region, held, ageMs }) =>
    ageMs === undefined ? `${cell(region)} none` : `${cell(region)} ${held}, ${showMs(ageMs)} ago`,
  );
  return `held by regions: ${texts.join('; ')}`;
}

function blockTexts({ blockForMs, strike, state }: ExplainedLimit): string[] {
  if (blockForMs === undefined) return [];
  const offences = state?.offences ?? 0;
  const steps = [blockForMs].flat().map((ms) => showMs(ms));
  const tries = strike === true ? ', from the last try on' : '';
  return [`blocks for ${steps.join(', ')}${tries}${offences > 0 ? `; offences: ${offences}` : ''}`];
}

function candidateText({ options, quota, state, decision }: ExplainedCandidate): string {
  const left = state === undefined ? '' : `, ${state.remaining}/${quota} left`;
  const verdict = decision === undefined ? '' : `, ${decisionText(decision, 'would refuse')}`;
  return `candidate ${rateText(options)}${left}${verdict}`;
}

/** The entry, such as `'10.0.0.0/8'` or `'tenant:*'`, and its reason. */
function listText(entry: ListedEntry): string {
  const { list, limit, version } = entry;
  const [named = ''] = Object.values(entry.entry) as string[];
  const of = limit === undefined ? 'all limits' : `'${limit}'`;
  const change = version === undefined ? ", of the module's options" : `, change ${version}`;
  return `'${named}' is on the list '${list}' of ${of}${untilText(entry)}${change}${causeText(entry)}`;
}

function overrideText({ key, ...rest }: Override): string {
  return `${key === undefined ? 'all keys' : `'${key}'`}${changeText(rest)}`;
}

/** The end of a change, its version, author and reason. */
export function changeText(
  change: CauseInfo & { readonly version: number; readonly expiresAt?: number | null | undefined },
): string {
  return `${untilText(change)}, change ${change.version}${causeText(change)}`;
}

function untilText({ expiresAt }: { expiresAt?: number | null | undefined }): string {
  return typeof expiresAt !== 'number' ? '' : ` until ${new Date(expiresAt).toISOString()}`;
}

interface CauseInfo {
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
}

/** The author of a change and the reason for it, in brackets. */
export function causeText({ by, reason }: CauseInfo): string {
  const cause = [by, reason].filter((text) => text !== undefined).join(': ');
  return cause === '' ? '' : ` (${cause})`;
}

function subjectText({ kind, limit = '', controller = '', handler = '', transport = '' }: ExplainedSubject): string {
  if (kind === 'limit') return `limit '${limit}'`;
  return kind === 'route' ? `${controller}.${handler}` : `${controller}.${handler} (${transport})`;
}

function outcomeText({ verdict, refusedBy, retryAfterMs, delayMs, reason, list }: ExplainedOutcome): string {
  if (list !== undefined) return `${verdict}, ${listText(list)}`;
  if (reason !== undefined) return `${verdict}, ${reason}`;
  if (verdict !== 'refused') return delayMs > 0 ? `${verdict} after ${showMs(delayMs)}` : verdict;
  return `refused by ${refusedBy.map((name) => `'${name}'`).join(', ')}, ${waitText(retryAfterMs)}`;
}

function functionRow({ origin, asked, gave = [], reason }: ExplainedFunction): string[] {
  const given = gave.length === 0 ? 'gave no limit' : `gave ${gave.join(', ')}`;
  return [`  ${originText(origin)}`, reason ?? (asked ? given : 'not asked')];
}

function leftOutRow({ name, origin, because, by, note }: LeftOutLimit): string[] {
  return [`  ${cell(name)}`, originText(origin), `${because} by ${by}${note === undefined ? '' : `; ${note}`}`];
}

function originText({ location, definition, byFunction }: LimitOrigin): string {
  const of = byFunction === true ? `function of ${location}` : location;
  return definition === undefined ? of : `${of} (${definition})`;
}

/** A rate as text, such as `gcra:60/1m`. */
export function rateText(options: AlgorithmOptions): string {
  return algorithms.get(options.algo)?.defaultName(options as never) ?? options.algo;
}

function waitText(retryAfterMs: number | null): string {
  return retryAfterMs === null ? 'never fits' : `retry after ${showMs(retryAfterMs)}`;
}

function time(ms: number | undefined): string {
  return ms === undefined || ms === 0 ? '-' : showMs(ms);
}

function cell(text: string): string {
  return printable(text, LONGEST_CELL);
}
