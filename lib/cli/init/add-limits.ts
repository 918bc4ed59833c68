import { existsSync } from 'node:fs';
import type TS from 'typescript';
import { initMessages } from '../../engine/errors/messages/cli.js';
import { InputError } from '../command.js';
import { Source } from '../migrate/source.js';
import { quoteOf } from '../migrate/values.js';

const PACKAGE = 'nestjs-sluice';
const ROUTES = new Set(['Get', 'Post', 'Put', 'Patch', 'Delete', 'All', 'Options', 'Head', 'Search']);

/** Adds the module to the imports of the root module. Returns true if it was missing. */
export function addModule(source: Source): boolean {
  const { ts, edits } = source;
  const options = moduleOptions(source);
  if (options === undefined) throw new InputError(initMessages.noDecorator(source.shown));
  if (/\bRateLimitModule\b/.test(source.text)) return false;
  source.own('RateLimitModule');
  const imports = source.valueOf(source.property(options, 'imports'));
  if (imports === undefined) {
    const first = options.properties[0];
    const lead = first === undefined ? '\n  ' : leadOf(source, first);
    const text = `imports: [${withLead(callOf(source), `${lead}  `)},${lead}],`;
    edits.insert(
      first === undefined ? options.getStart(source.ast) + 1 : first.getStart(source.ast),
      first === undefined ? `${lead}${text}\n` : text + lead,
    );
    return true;
  }
  if (!ts.isArrayLiteralExpression(imports)) throw new InputError(initMessages.unreadableImports(source.shown));
  const last = imports.elements.at(-1);
  const lead = last === undefined ? `${leadOf(source, imports.parent)}  ` : leadOf(source, last);
  const isLines = last !== undefined && imports.getText(source.ast).includes('\n');
  if (last === undefined) {
    source.rewrite(imports, `[${withLead(callOf(source), lead)},${leadOf(source, imports.parent)}]`);
  } else if (isLines) {
    const hasComma = imports.elements.hasTrailingComma;
    edits.insert(last.end, `,${withLead(callOf(source), lead)}${hasComma ? '' : ','}`);
  } else {
    const outer = leadOf(source, imports.parent);
    const texts = [...imports.elements.map((each) => source.before(each)), callOf(source)];
    source.rewrite(imports, `[${texts.map((text) => `${withLead(text, `${outer}  `)},`).join('')}${outer}]`);
  }
  return true;
}

/** The lines of the module in a list of imports. */
function callOf(source: Source): string {
  const quote = quoteOf(source);
  return [
    'RateLimitModule.forRoot({',
    '  // Counts on this Redis, together with all instances; in process if there is none.',
    '  redis: process.env.REDIS_URL,',
    '  // For every route and client.',
    '  limits: [',
    `    { name: 'burst', algo: 'gcra', rate: 20, interval: '1s', burst: 40 },`.replaceAll("'", quote),
    '  ],',
    '})',
  ].join('\n');
}

function withLead(text: string, lead: string): string {
  return lead + text.replaceAll('\n', lead);
}

/** The line break and the indentation before a node; only the line break if other code is before it. */
function leadOf(source: Source, node: TS.Node): string {
  const before = source.text.slice(0, node.getStart(source.ast));
  return /\n[ \t]*$/.exec(before)?.[0] ?? `\n${/(?:^|\n)([ \t]*)[^\n]*$/.exec(before)?.[1] ?? ''}`;
}

/** The file of a module's first controller, if its import reveals it. */
export function controllerFile(source: Source): string | undefined {
  const options = moduleOptions(source);
  const controllers = options && source.valueOf(source.property(options, 'controllers'));
  if (controllers === undefined || !source.ts.isArrayLiteralExpression(controllers)) return undefined;
  const [first] = controllers.elements;
  const from = first === undefined ? undefined : source.imported.get(source.before(first));
  if (from === undefined || !from.module.startsWith('.')) return undefined;
  const path = source.pathOf(from.module);
  return existsSync(path) ? path : undefined;
}

/** Adds a limit to the first route of a file. Returns the route's method, unless it already had a limit. */
export function addExample(source: Source): string | undefined {
  const { ts } = source;
  if (/\bRateLimit\b/.test(source.text)) return undefined;
  let added: string | undefined;
  source.visit(source.ast, (node) => {
    if (added !== undefined || !ts.isMethodDeclaration(node)) return;
    const route = source.decoratorsOf(node).find((each) => ROUTES.has(decoratorName(source, each)));
    if (route === undefined) return;
    source.own('RateLimit');
    const limit = `@RateLimit({ algo: 'token-bucket', rate: 5, interval: '10s' })`.replaceAll("'", quoteOf(source));
    source.edits.insert(route.end, leadOf(source, route) + limit);
    added = source.before(node.name);
  });
  return added;
}

/** Switches limits off in the modules of an e2e spec. Returns true if they weren't. */
export function addTestHelper(source: Source): boolean {
  const { ts } = source;
  if (/\bRateLimitTesting\b/.test(source.text)) return false;
  let added = false;
  source.visit(source.ast, (node) => {
    if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return;
    const { expression, name } = node.expression;
    const from = source.imported.get(source.before(expression));
    if (name.text !== 'createTestingModule' || from?.module !== '@nestjs/testing') return;
    source.want(`${PACKAGE}/testing`, 'RateLimitTesting');
    const text = source.before(node);
    // Formatted like Prettier. The lines of a template literal are part of its value.
    const isOnLines = text.includes('\n') && !text.includes('`');
    const lead = leadOf(source, node);
    const inner = isOnLines ? `${lead}  ${text.replaceAll('\n', '\n  ')},${lead}` : text;
    source.rewrite(node, `RateLimitTesting.disable(${inner})`);
    added = true;
  });
  return added;
}

function moduleOptions(source: Source): TS.ObjectLiteralExpression | undefined {
  const { ts } = source;
  for (const statement of source.ast.statements) {
    if (!ts.isClassDeclaration(statement)) continue;
    for (const decorator of source.decoratorsOf(statement)) {
      if (decoratorName(source, decorator) !== 'Module') continue;
      const [options] = (decorator.expression as TS.CallExpression).arguments;
      if (options !== undefined && ts.isObjectLiteralExpression(options)) return options;
    }
  }
  return undefined;
}

/** The name of a Nest decorator that is called. */
function decoratorName(source: Source, { expression }: TS.Decorator): string {
  if (!source.ts.isCallExpression(expression)) return '';
  const from = source.imported.get(source.before(expression.expression));
  return from?.module === '@nestjs/common' ? from.name : '';
}
