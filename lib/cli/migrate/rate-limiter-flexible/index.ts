import type TS from 'typescript';
import type { Project } from '../project.js';
import type { Source } from '../source.js';
import {
  callsOf,
  convertCall,
  convertResults,
  definitionOf,
  FLEXIBLE,
  type FoundLimiter,
  limiterOf,
} from './limiters.js';

/** Converts limiters of `rate-limiter-flexible` that Nest classes create. Returns the files that it examined. */
export function migrateRateLimiterFlexible(project: Project): readonly Source[] {
  const sources = project.matching(/rate-limiter-flexible/);
  const found = sources.flatMap(limitersOf);
  const converted = found.filter(isConvertible);
  const isMixed = converted.some(({ isOnRedis }) => isOnRedis) && converted.some(({ isOnRedis }) => !isOnRedis);
  for (const source of new Set(converted.map((limiter) => limiter.source))) {
    const own = converted.filter((limiter) => limiter.source === source);
    // A file whose results come from limiters of both kinds would read them in two ways.
    if (own.length < found.filter((limiter) => limiter.source === source).length) {
      for (const limiter of own) source.leave(limiter.node, 'others of this file stay: convert them together');
      continue;
    }
    for (const limiter of own) for (const call of callsOf(limiter)!) convertCall(source, call);
    convertResults(source, source.localOf(FLEXIBLE, 'RateLimiterRes'));
    for (const owner of new Set(own.map((limiter) => limiter.owner))) {
      const limiters = own.filter((limiter) => limiter.owner === owner);
      convertClass(source, owner, limiters, isMixed);
    }
  }
  const [first] = converted;
  // The app may get the module while its throttlers are converted.
  const getsModule = project.sourcesRead.some(
    ({ wanted }) => wanted.get('nestjs-sluice')?.has('RateLimitModule') === true,
  );
  if (first !== undefined && !getsModule && project.matching(/\bRateLimitModule\b/).length === 0) {
    const redis = converted.some(({ isOnRedis }) => isOnRedis) ? '{ redis: … }' : '';
    const why = `LimiterService belongs to RateLimitModule: import RateLimitModule.forRoot(${redis}) once, in the root module of the app`;
    first.source.leave(first.node, why);
  }
  return sources;
}

/** The limiters that classes create. Reports the others. */
function limitersOf(source: Source): FoundLimiter[] {
  const { ts } = source;
  const found: FoundLimiter[] = [];
  source.visit(source.ast, (node) => {
    if (!ts.isNewExpression(node) || !ts.isIdentifier(node.expression)) return;
    const from = source.imported.get(node.expression.text);
    if (from === undefined || !FLEXIBLE.test(from.module)) return;
    if (isInsurance(source, node)) return;
    const limiter = limiterOf(source, node, from.name);
    if (typeof limiter === 'string') source.leave(node, `new ${from.name}: ${limiter}`);
    else found.push(limiter);
  });
  return found;
}

/** Returns true for a limiter that is used when Redis fails. This package counts in process in that case anyway. */
function isInsurance(source: Source, { parent }: TS.NewExpression): boolean {
  return source.ts.isPropertyAssignment(parent) && source.before(parent.name) === 'insuranceLimiter';
}

function isConvertible(limiter: FoundLimiter): boolean {
  const { source, node, property } = limiter;
  const isKnown = definitionOf(source, node, property, '') !== undefined;
  if (isKnown && callsOf(limiter) !== undefined) return true;
  const why = isKnown
    ? `more is done with ${property} than to consume, get, delete, penalize, reward and block: convert it by hand`
    : "its options are not all known, or have no counterpart (duration: 0, execEvenly): write limiters.for({ algo: 'fixed-window', … }) by hand";
  source.leave(node, why);
  return false;
}

/** Makes a class get its limiters from `LimiterService`. */
function convertClass(
  source: Source,
  owner: TS.ClassDeclaration,
  limiters: readonly FoundLimiter[],
  isMixed: boolean,
): void {
  const { ts } = source;
  const made: string[] = [];
  for (const { node, property, assignment, isOnRedis } of limiters) {
    const definition = definitionOf(source, node, property, isMixed && !isOnRedis ? "scope: 'instance'" : '')!;
    const text = `limiters.for(${definition})`;
    const declared = owner.members
      .filter(ts.isPropertyDeclaration)
      .find(({ name }) => source.nameOf(name) === property);
    if (assignment !== undefined) source.rewrite(node, text);
    else made.push(`this.${property} = ${text};`);
    if (declared !== undefined) {
      const end = (declared.type ?? declared.initializer)?.end;
      const last = declared.initializer?.end ?? end ?? declared.name.end;
      source.edits.replace(declared.name.end, last, `: ${source.own('type Limiter')}`);
    }
    source.done(node, `${source.before(node.expression)} -> ${text}`);
  }
  source.own('LimiterService');
  const lines = made.map((line) => `\n    ${line}`).join('');
  const constructor = owner.members.find(ts.isConstructorDeclaration);
  if (constructor?.body === undefined) {
    const place = owner.members.findLast(ts.isPropertyDeclaration);
    const text = `\n\n  constructor(limiters: LimiterService) {${lines}\n  }`;
    source.edits.insert(place?.end ?? owner.members.pos, text);
    return;
  }
  const { parameters, body } = constructor;
  const last = parameters.at(-1);
  if (last === undefined) {
    const open = source.text.indexOf('(', constructor.getStart(source.ast)) + 1;
    source.edits.insert(open, 'limiters: LimiterService');
  } else {
    const lead = /\n[ \t]*$/.exec(source.text.slice(0, last.getStart(source.ast)))?.[0] ?? ' ';
    source.edits.insert(last.end, `,${lead}limiters: LimiterService`);
  }
  const parent = body.statements.find((one) => source.before(one).startsWith('super('));
  const end = made.length > 0 && body.statements.length === 0 ? '\n  ' : '';
  source.edits.insert(parent?.end ?? body.getStart(source.ast) + 1, lines + end);
}
