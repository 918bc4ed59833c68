import type TS from 'typescript';
import type { Project } from '../project.js';
import { isIn, type Source } from '../source.js';
import { HELPERS, helperOf } from '../values.js';
import { Decorators } from './decorators.js';
import { STORAGES, THROTTLER, ThrottlerFacts } from './facts.js';
import { convertGuards } from './guard-classes.js';
import { GuardUse } from './guard-use.js';
import { ModuleOptions } from './options.js';

/** Packages that are no longer needed once everything is converted. */
export const THROTTLER_PACKAGES = [
  '@nestjs/throttler',
  '@nest-lab/throttler-storage-redis',
  'nestjs-throttler-storage-redis',
];

const RENAMED: Readonly<Record<string, string>> = {
  ThrottlerModuleOptions: 'type RateLimitModuleOptions',
  ThrottlerOptions: 'type LimitDefinition',
  ThrottlerException: 'RateLimitExceededException',
};

/** Converts all uses of `@nestjs/throttler` in a project. Returns the files that it examined. */
export function migrateThrottler(project: Project): readonly Source[] {
  const facts = new ThrottlerFacts(project);
  if (facts.sources.length === 0) return [];
  const use = new GuardUse(facts);
  const decorators = new Decorators(facts, use);
  // From the inside out, so that moved code includes the changes inside it.
  for (const source of facts.sources) convertNames(facts, source);
  use.convert();
  for (const source of facts.sources) decorators.convert(source);
  new ModuleOptions(facts, use).convertAll();
  convertGuards(facts);
  for (const source of facts.sources) nameRest(facts, source);
  return facts.sources;
}

function convertNames(facts: ThrottlerFacts, source: Source): void {
  const { ts } = source;
  const guards = [...facts.guards.values()].filter((guard) => guard.source === source);
  const isInConstructor = (node: TS.Node) => ts.findAncestor(node, ts.isConstructorDeclaration) !== undefined;
  const isGuarded = (node: TS.Node) =>
    guards.some((guard) => isIn(node, guard.node) && (guard.outcome === 'left' || isInConstructor(node)));
  for (const [local, { module, name }] of source.imported) {
    if (!THROTTLER.test(module)) continue;
    for (const node of source.usesOf(local)) {
      if (isGuarded(node)) continue;
      if (name === 'ThrottlerModule') convertModule(source, node);
      else if (name === 'ThrottlerException' && ts.isNewExpression(node.parent)) convertThrow(source, node.parent);
      else if (name === 'ThrottlerOptionsFactory' && ts.isExpressionWithTypeArguments(node.parent))
        dropInterface(source, node.parent);
      else if (name in HELPERS && ts.isCallExpression(node.parent)) convertHelper(source, node.parent);
      else if (Object.hasOwn(RENAMED, name)) {
        source.rewrite(node, source.own(RENAMED[name]!));
        source.done(node, `${name} -> ${RENAMED[name]!.replace('type ', '')}`);
      }
    }
  }
}

/** Converts the module without its options, where others import or export it. The new module is global. */
function convertModule(source: Source, node: TS.Identifier): void {
  const { ts } = source;
  const list = node.parent;
  if (!ts.isArrayLiteralExpression(list) || !ts.isPropertyAssignment(list.parent)) return;
  source.removeFrom(list, new Set([node]));
  source.done(node, 'ThrottlerModule need not be imported or exported: RateLimitModule is global');
}

function convertThrow(source: Source, node: TS.NewExpression): void {
  const message =
    node.arguments?.[0] === undefined ? "'ThrottlerException: Too Many Requests'" : source.now(node.arguments[0]);
  source.want('@nestjs/common', 'HttpException');
  source.rewrite(node, `new HttpException(${message}, 429)`);
  source.done(node, 'ThrottlerException -> HttpException');
}

function dropInterface(source: Source, node: TS.ExpressionWithTypeArguments): void {
  const clause = node.parent as TS.HeritageClause;
  if (clause.types.length > 1) source.remove(clause.types, new Set([node]));
  else source.edits.replace(clause.getFullStart(), clause.end, '');
}

function convertHelper(source: Source, call: TS.CallExpression): void {
  const unit = helperOf(source, call);
  const [argument] = call.arguments;
  if (unit !== undefined && argument !== undefined) source.rewrite(call, `(${source.now(argument)}) * ${unit}`);
}

const INSTEAD: Readonly<Record<string, string>> = {
  InjectThrottlerStorage: '@InjectLimiter(name), or LimiterService',
  InjectThrottlerOptions: 'LimiterService',
  getStorageToken: 'LimiterService',
  getOptionsToken: 'LimiterService',
  ThrottlerStorage: "the option 'redis', or 'store' with a class that implements Store",
  ThrottlerStorageService: "nothing: counters are in process without 'redis'",
  ThrottlerStorageRedisService: "the option 'redis'",
  ThrottlerLimitDetail: 'CheckResult',
  ThrottlerRequest: 'options of limits',
  ThrottlerAsyncOptions: 'Parameters<typeof RateLimitModule.forRootAsync>[0]',
};

/** Reports the remaining uses of the throttler in a file. */
function nameRest(facts: ThrottlerFacts, source: Source): void {
  nameWhole(source);
  const kept = [...facts.guards.values()].filter((guard) => guard.source === source);
  for (const [local, { module, name }] of source.imported) {
    if (!THROTTLER.test(module) && !STORAGES.test(module)) continue;
    for (const node of source.usesOf(local)) {
      if (kept.some((guard) => isIn(node, guard.node)) || !source.keeps(node) || node.text.endsWith('Throttle'))
        continue;
      const instead = INSTEAD[name];
      source.leave(node, `${name} stays${instead === undefined ? '' : `: use ${instead}`}`);
    }
  }
}

/** Reports namespace imports, whose uses aren't examined. */
function nameWhole(source: Source): void {
  const { ts } = source;
  source.visit(source.ast, (node) => {
    if (!ts.isStringLiteralLike(node) || !THROTTLER.test(node.text)) return;
    const { parent } = node;
    const bindings = ts.isImportDeclaration(parent) ? parent.importClause?.namedBindings : undefined;
    const isNamed = bindings !== undefined && ts.isNamedImports(bindings);
    if (!isNamed) source.leave(node, `only 'import { … } from' ${node.text} is converted`);
  });
}
