import type TS from 'typescript';
import type { Source } from '../source.js';
import { constantOf, durationOf, durationText, numberOf, quoted, quoteOf } from '../values.js';
import type { ThrottlerFacts } from './facts.js';
import { convertFunctions } from './option-values.js';
import { sharing } from './guards.js';

export interface LimitForm {
  /** Its name, unless its own options have one. */
  readonly name: string;
  readonly perRoute: boolean;
  /** True if it is in the options of the module. */
  readonly isOfModule?: boolean;
  /** Defaults for options that the limit lacks, as text. */
  readonly rate?: string | undefined;
  readonly interval?: string | undefined;
  /** The class that returns keys, if it isn't the module's. */
  readonly key?: string | undefined;
}

const WITHOUT_COUNTERPART = {
  setHeaders:
    "'setHeaders' of a single throttler has no counterpart: use 'hidden' of the limit, or 'headers' of the module",
  storage: "'storage' of a single throttler was never read: taken out; RateLimitModule.forRoot has the option 'redis'",
};

/** The options that an object with a limit of the throttler may have. */
const KNOWN = new Set([
  'name',
  'limit',
  'ttl',
  'blockDuration',
  'skipIf',
  'ignoreUserAgents',
  'getTracker',
  'generateKey',
  ...Object.keys(WITHOUT_COUNTERPART),
]);

/** Converts an object literal of the throttler to a limit, in place. Returns true if it can. */
export function convertLimit(
  facts: ThrottlerFacts,
  source: Source,
  object: TS.ObjectLiteralExpression,
  form: LimitForm,
): boolean {
  const unit = facts.unitOf(source);
  const names = object.properties.map((one) => source.nameOf(one.name));
  if (names.some((name) => name === undefined || !KNOWN.has(name))) return false;
  const property = (name: string) => source.property(object, name);
  const [limit, ttl] = [source.valueOf(property('limit')), source.valueOf(property('ttl'))];
  if ((limit === undefined && form.rate === undefined) || (ttl === undefined && form.interval === undefined))
    return false;
  const isTimed = ttl !== undefined && isFunction(source, ttl);
  if (isTimed && !form.isOfModule) return false;
  const block = source.valueOf(property('blockDuration'));
  if (block !== undefined && isFunction(source, block)) return false;
  if (isTimed) {
    const why = "'ttl' is a function: an interval is the same for all requests; it is '1m' now, until you choose one";
    source.leave(ttl, why);
  }

  const interval =
    ttl === undefined
      ? form.interval!
      : isTimed
        ? `${durationText(60_000, quoteOf(source))} /* TODO(nestjs-sluice): was a function */`
        : durationOf(source, ttl, unit);
  const blockFor = block === undefined ? interval : durationOf(source, block, unit);
  const isBlocking = facts.blocks(source) && (block === undefined || constantOf(source, block) !== 0);
  const removed = new Set<TS.Node>();
  const tail: string[] = [];
  const put = (name: string, text: string): void => {
    const one = property(name);
    if (one === undefined) tail.push(text);
    else source.rewrite(one, text);
  };
  put('limit', `rate: ${limit === undefined ? form.rate : numberOf(source, limit)}`);
  put('ttl', `interval: ${interval}`);
  if (isBlocking) put('blockDuration', `blockFor: ${blockFor}`);
  else if (block !== undefined) removed.add(property('blockDuration')!);
  tail.push(...convertFunctions(source, facts, object, removed));
  if (property('getTracker') === undefined && form.key !== undefined) tail.push(`key: ${form.key}`);
  let { perRoute } = form;
  const generator = property('generateKey');
  if (generator !== undefined) {
    if (sharesKeys(source, generator)) perRoute = false;
    removed.add(generator);
  }
  for (const [name, why] of Object.entries(WITHOUT_COUNTERPART)) {
    const one = property(name);
    if (one === undefined) continue;
    removed.add(one);
    source.leave(one, why);
  }
  if (perRoute) tail.push('perRoute: true');
  const kept = object.properties.filter((one) => !removed.has(one));
  const head = property('name') === undefined ? [`name: ${quoted(source, form.name)}`] : [];
  source.remove(object.properties, removed);
  const algo = `algo: ${quoted(source, facts.algo)}`;
  const [first] = kept;
  if (first !== undefined && first === property('name')) {
    source.edits.insert(first.end, source.separator(object) + algo);
    source.extend(object, head, tail, kept);
  } else {
    source.extend(object, [...head, algo], tail, kept);
  }
  return true;
}

/** Returns true if the keys that a function returns are the same for all routes. Reports functions for which that is unknown. */
export function sharesKeys(source: Source, property: TS.ObjectLiteralElementLike): boolean {
  const fn = source.functionOf(property);
  const shared = fn && sharing(source, fn);
  if (shared === undefined) {
    const why =
      "'generateKey' makes keys of its own: taken out; use 'key' for who is counted, 'perRoute' for what shares a counter";
    source.leave(property, why);
  }
  return shared === true;
}

/** Returns true if an expression is certainly a function. */
export function isFunction(source: Source, node: TS.Expression): boolean {
  const bare = source.bare(node);
  return source.ts.isArrowFunction(bare) || source.ts.isFunctionExpression(bare);
}

/** A limit made of an expression whose options are only known at run time. */
export function limitOfExpression(
  facts: ThrottlerFacts,
  source: Source,
  text: string,
  has: ReadonlySet<string>,
  form: LimitForm,
): string {
  const unit = facts.unitOf(source);
  const times = unit === 1 ? '' : ` * ${unit}`;
  const rate = has.has('limit') ? `${text}.limit` : form.rate;
  const interval = has.has('ttl') ? `${text}.ttl${times}` : form.interval;
  const blockFor = has.has('blockDuration') ? `${text}.blockDuration` : interval;
  return limitText(facts, source, { ...form, rate, interval }, blockFor);
}

/** The text of a limit; with `blockFor` if the throttler's version blocks. */
export function limitText(
  facts: ThrottlerFacts,
  source: Source,
  { name, rate, interval, key, perRoute }: LimitForm,
  blockFor?: string,
): string {
  const entries = [
    `name: ${quoted(source, name)}`,
    `algo: ${quoted(source, facts.algo)}`,
    `rate: ${rate}`,
    `interval: ${interval}`,
  ];
  if (blockFor !== undefined && facts.blocks(source)) entries.push(`blockFor: ${blockFor}`);
  if (key !== undefined) entries.push(`key: ${key}`);
  if (perRoute) entries.push('perRoute: true');
  return `{ ${entries.join(', ')} }`;
}

/** The name of a function that converts options at run time. Adds it to the file. */
export function limitOfHelper(facts: ThrottlerFacts, source: Source): string {
  const blocks = facts.blocks(source);
  const times = facts.unitOf(source) === 1 ? '' : ` * ${facts.unitOf(source)}`;
  const quote = (text: string): string => quoted(source, text);
  const parameters = ['name?: string', 'limit: number', 'ttl: number', ...(blocks ? ['blockDuration?: number'] : [])];
  source.helpers.set(
    'limitOf',
    `/** A limit that counts as @nestjs/throttler does. */\n` +
      `const limitOf = ({ name = ${quote('default')}, limit, ttl${blocks ? ', blockDuration = ttl' : ''} }: { ${parameters.join('; ')} }) => ({\n` +
      `  name,\n  algo: ${quote(facts.algo)} as const,\n  rate: limit,\n  interval: ttl${times},\n` +
      (blocks ? `  ...(blockDuration > 0 && { blockFor: blockDuration${times} }),\n` : '') +
      '  perRoute: true,\n});',
  );
  return 'limitOf';
}
