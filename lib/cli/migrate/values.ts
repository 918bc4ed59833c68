import type TS from 'typescript';
import type { Source } from './source.js';

/** The milliseconds of the helpers of `@nestjs/throttler`. */
export const HELPERS: Readonly<Record<string, number>> = {
  seconds: 1000,
  minutes: 60_000,
  hours: 3_600_000,
  days: 86_400_000,
  weeks: 604_800_000,
};

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** A duration in source code: `'15m'`, or a number of milliseconds. */
export function durationText(ms: number, quote = "'"): string {
  const unit = UNITS.find(([, size]) => ms >= size && ms % size === 0);
  return unit === undefined ? String(ms) : `${quote}${ms / unit[1]}${unit[0]}${quote}`;
}

/** The value of an expression that consists of literals. */
export function constantOf(source: Source, expression: TS.Expression): number | undefined {
  const { ts } = source;
  const node = source.bare(expression);
  if (ts.isNumericLiteral(node)) return Number(node.text.replaceAll('_', ''));
  if (ts.isCallExpression(node)) {
    const unit = helperOf(source, node);
    const argument = node.arguments[0] && constantOf(source, node.arguments[0]);
    return unit === undefined || argument === undefined ? undefined : unit * argument;
  }
  if (!ts.isBinaryExpression(node)) return undefined;
  const [left, right] = [constantOf(source, node.left), constantOf(source, node.right)];
  if (left === undefined || right === undefined) return undefined;
  return OPERATORS.get(source.before(node.operatorToken))?.(left, right);
}

const OPERATORS = new Map<string, (left: number, right: number) => number>([
  ['*', (left, right) => left * right],
  ['+', (left, right) => left + right],
  ['-', (left, right) => left - right],
  ['/', (left, right) => left / right],
]);

/** The milliseconds of a helper such as `seconds`; `undefined` for any other call. */
export function helperOf(source: Source, { expression }: TS.CallExpression): number | undefined {
  if (!source.ts.isIdentifier(expression)) return undefined;
  const from = source.imported.get(expression.text);
  return from?.module === '@nestjs/throttler' ? HELPERS[from.name] : undefined;
}

/** The text of a duration. Its number is in units of `unitMs`, unless it comes from a helper. */
export function durationOf(source: Source, expression: TS.Expression, unitMs: number): string {
  const { ts } = source;
  const node = source.bare(expression);
  const constant = constantOf(source, node);
  if (constant !== undefined && Number.isSafeInteger(constant * unitMs)) {
    return durationText(constant * unitMs, quoteOf(source));
  }
  if (unitMs === 1) return numberOf(source, expression);
  const text = numberOf(source, expression);
  const isTight =
    ts.isIdentifier(node) ||
    ts.isPropertyAccessExpression(node) ||
    ts.isCallExpression(node) ||
    text.startsWith('Number(');
  return `${isTight ? text : `(${text})`} * ${unitMs}`;
}

/** The text of a number. Values from the environment may be strings. */
export function numberOf(source: Source, expression: TS.Expression): string {
  const { ts } = source;
  const node = source.bare(expression);
  const text = source.now(expression);
  const isNumber =
    ts.isArrowFunction(node) ||
    ts.isFunctionExpression(node) ||
    ts.isPrefixUnaryExpression(node) ||
    (ts.isCallExpression(node) &&
      /^(?:Number|parseInt|parseFloat|Number\.\w+|Math\.\w+)$/.test(source.before(node.expression))) ||
    (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.AsteriskToken);
  // The condition itself isn't a value.
  const valued = ts.isConditionalExpression(node) ? [node.whenTrue, node.whenFalse] : [expression];
  const isText = /\.get(?:OrThrow)?(?:<[^>]*>)?\(|process\.env/.test(valued.map((one) => source.before(one)).join(' '));
  return isText && !isNumber ? `Number(${text})` : text;
}

export function quoteOf(source: Source): "'" | '"' {
  const specifier = source.ast.statements.find(source.ts.isImportDeclaration)?.moduleSpecifier;
  return specifier !== undefined && source.before(specifier).startsWith('"') ? '"' : "'";
}

/** A text as a literal in the style of the file. */
export function quoted(source: Source, text: string): string {
  const quote = quoteOf(source);
  return quote + text.replaceAll('\\', '\\\\').replaceAll(quote, `\\${quote}`) + quote;
}
