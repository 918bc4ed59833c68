import type TS from 'typescript';
import type { Source } from '../source.js';
import { STORAGES, type ThrottlerFacts } from './facts.js';

/** A formatter for limits with names, put into the file. Returns its name. */
export function headersByName(source: Source): string {
  source.own('type HeaderFormatter');
  source.helpers.set(
    'headersByName',
    '/** X-RateLimit headers of each limit, with its name unless it is that of the throttler without one. */\n' +
      'const headersByName: HeaderFormatter = ({ decisions }) =>\n' +
      '  Object.fromEntries(\n' +
      '    decisions.flatMap(({ allowed, limit, quota, remaining, resetAfterMs, retryAfterMs }) => {\n' +
      "      const suffix = limit === 'default' ? '' : `-${limit}`;\n" +
      "      if (!allowed) return suffix === '' ? [] : [[`Retry-After${suffix}`, String(Math.ceil(retryAfterMs / 1000))]];\n" +
      '      return [\n' +
      '        [`X-RateLimit-Limit${suffix}`, String(quota)],\n' +
      '        [`X-RateLimit-Remaining${suffix}`, String(remaining)],\n' +
      '        [`X-RateLimit-Reset${suffix}`, String(Math.ceil(resetAfterMs / 1000))],\n' +
      '      ];\n' +
      '    }),\n' +
      '  );',
  );
  return 'headersByName';
}

/** The expression of the request of a context. */
export function requestOf(source: Source, facts: ThrottlerFacts, context: string): string {
  if (!facts.hasGraphql) return `${context}.switchToHttp().getRequest()`;
  source.want('@nestjs/common', 'type ExecutionContext');
  source.want('@nestjs/graphql', 'GqlExecutionContext');
  source.helpers.set(
    'requestOf',
    'const requestOf = (context: ExecutionContext) =>\n' +
      "  context.getType<string>() === 'graphql'\n" +
      '    ? GqlExecutionContext.create(context).getContext().req\n' +
      '    : context.switchToHttp().getRequest();',
  );
  return `requestOf(${context})`;
}

/** `skip` and `key` of the options of an object that are functions of the request. Adds these options to those to remove. */
export function convertFunctions(
  source: Source,
  facts: ThrottlerFacts,
  object: TS.ObjectLiteralExpression,
  removed: Set<TS.Node>,
): string[] {
  const names = ['skipIf', 'ignoreUserAgents', 'getTracker'];
  const [skipIf, agents, tracker] = names.map((name) => source.property(object, name));
  const entries: string[] = [];
  if (skipIf !== undefined || agents !== undefined) entries.push(`skip: ${skipOf(source, facts, skipIf, agents)}`);
  if (tracker !== undefined) entries.push(`key: ${keyOfTracker(source, facts, tracker)}`);
  for (const property of [skipIf, agents, tracker]) if (property !== undefined) removed.add(property);
  return entries;
}

/** The function of the option `key` for a function of the request and the context. */
function keyOfTracker(source: Source, facts: ThrottlerFacts, property: TS.ObjectLiteralElementLike): string {
  const { ts } = source;
  const fn = source.functionOf(property);
  if (fn === undefined) {
    const value = source.valueOf(property);
    const name = value === undefined ? 'undefined' : source.now(value);
    return `(context: ${contextType(source)}) => ${name}(${requestOf(source, facts, 'context')}, context)`;
  }
  const [request, context] = fn.parameters;
  const header = literalHeader(source, fn, request);
  if (header !== undefined) return `'header:${header}'`;
  const name = context !== undefined && ts.isIdentifier(context.name) ? context.name.text : 'context';
  const isAsync = fn.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) === true;
  const start = `${isAsync ? 'async ' : ''}(${name}: ${contextType(source)}) => `;
  if (request === undefined || fn.body === undefined)
    return `${start}${fn.body === undefined ? 'undefined' : source.now(fn.body)}`;
  const pattern = source.before(request.name);
  const line = `const ${pattern} = ${requestOf(source, facts, name)};`;
  if (!ts.isBlock(fn.body)) return `${start}{ ${line} return ${source.now(fn.body)}; }`;
  const body = source.now(fn.body);
  const lead = /^\{(\s*)/.exec(body)![1]!;
  return `${start}{${lead}${line}${lead === '' ? ' ' : ''}${lead.includes('\n') ? body.slice(1) : ` ${body.slice(1).trimStart()}`}`;
}

/** The header that a function of the request returns, if it does nothing else. */
function literalHeader(source: Source, fn: TS.Node, request: TS.ParameterDeclaration | undefined): string | undefined {
  const [returned, ...more] = source.returned(fn);
  if (returned === undefined || more.length > 0 || request === undefined) return undefined;
  const pattern = new RegExp(String.raw`^${source.before(request.name)}\.headers(?:\[(['"])([\w-]+)\1\]|\.([\w]+))$`);
  const body = (fn as TS.FunctionLikeDeclaration).body;
  if (body !== undefined && source.ts.isBlock(body) && body.statements.length > 1) return undefined;
  const [, , quoted, plain] = pattern.exec(source.before(source.bare(returned))) ?? [];
  return quoted ?? plain;
}

function contextType(source: Source): string {
  source.want('@nestjs/common', 'type ExecutionContext');
  return 'ExecutionContext';
}

/** `skip` of the options `skipIf` and `ignoreUserAgents`. */
function skipOf(
  source: Source,
  facts: ThrottlerFacts,
  skipIf: TS.ObjectLiteralElementLike | undefined,
  agents: TS.ObjectLiteralElementLike | undefined,
): string {
  const { ts } = source;
  const list = source.valueOf(agents);
  const byAgent = (): string =>
    `${source.now(list!)}.some((agent) => agent.test(${requestOf(source, facts, 'context')}.headers['user-agent'] ?? ''))`;
  if (skipIf === undefined) return `(context: ${contextType(source)}) => ${byAgent()}`;
  const value = source.valueOf(skipIf);
  const fn = ts.isMethodDeclaration(skipIf)
    ? `(${skipIf.parameters.map((one) => source.now(one)).join(', ')}) => ${source.now(skipIf.body!)}`
    : source.now(value!);
  if (list === undefined) return fn;
  const called = value !== undefined && ts.isIdentifier(value) ? fn : `(${fn})`;
  return `(context: ${contextType(source)}) => ${called}(context) || ${byAgent()}`;
}

const OF_DETAIL: Readonly<Record<string, string>> = {
  limit: 'tightest.quota',
  timeToExpire: 'Math.ceil(tightest.retryAfterMs / 1000)',
  timeToBlockExpire: 'Math.ceil(tightest.retryAfterMs / 1000)',
};

/** `message` of the option `errorMessage`; `undefined` if its function needs a value that no decision has. */
export function messageOf(source: Source, property: TS.ObjectLiteralElementLike): string | undefined {
  const { ts } = source;
  const fn = source.functionOf(property);
  const value = source.valueOf(property);
  if (fn === undefined) return value && source.now(value);
  const [context, detail] = fn.parameters;
  const { body } = fn;
  if (body === undefined) return undefined;
  if (detail !== undefined && ts.isIdentifier(detail.name)) {
    for (const use of source.usesOf(detail.name.text, body)) {
      const known = ts.isPropertyAccessExpression(use.parent) ? OF_DETAIL[use.parent.name.text] : undefined;
      if (known === undefined) return undefined;
      source.rewrite(use.parent, known);
    }
  } else if (detail !== undefined) {
    return undefined;
  }
  const first = context === undefined ? '' : ts.isIdentifier(context.name) ? context.name.text : '_context';
  const parameters = detail === undefined ? first : `${first}, { tightest }`;
  return `(${parameters}) => ${source.now(body)}`;
}

/** Replaces a storage on Redis by `redis`. Returns true if it is one, and reports others. */
export function convertStorage(source: Source, property: TS.ObjectLiteralElementLike): boolean {
  const { ts } = source;
  const value = source.valueOf(property);
  const node = value && source.bare(value);
  const name = node !== undefined && ts.isIdentifier(node) ? node.text : undefined;
  const storage = name === undefined ? value : source.declared(name);
  if (storage !== undefined && !ts.isFunctionDeclaration(storage) && redisOf(source, storage)) {
    const text = name ?? source.now(storage);
    source.rewrite(property, text === 'redis' ? 'redis' : `redis: ${text}`);
    return true;
  }
  const why =
    "'storage' is one of your own: taken out, so counters are in process; use 'redis', or 'store' with a class that implements Store";
  source.leave(property, why);
  return false;
}

/** Replaces storages on Redis by their connections. Returns true if there is one. */
function redisOf(source: Source, expression: TS.Expression): boolean {
  const { ts } = source;
  const node = source.bare(expression);
  if (ts.isConditionalExpression(node)) {
    const [yes, no] = [redisOf(source, node.whenTrue), redisOf(source, node.whenFalse)];
    return yes || no;
  }
  if (!ts.isNewExpression(node) || !ts.isIdentifier(node.expression)) return false;
  if (!STORAGES.test(source.imported.get(node.expression.text)?.module ?? '')) return false;
  const [connection] = node.arguments ?? [];
  source.rewrite(expression, connection === undefined ? "'redis://localhost:6379'" : source.now(connection));
  return true;
}
