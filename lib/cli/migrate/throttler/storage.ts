import type TS from 'typescript';
import type { Source } from '../source.js';
import { STORAGES, type ThrottlerFacts } from './facts.js';

/** Replaces a storage on Redis by `redis`. Returns true if it is one, and reports others. */
export function convertStorage(facts: ThrottlerFacts, source: Source, property: TS.ObjectLiteralElementLike): boolean {
  const value = source.valueOf(property);
  const { ts } = source;
  if (value !== undefined && ts.isIdentifier(source.bare(value))) {
    const name = (source.bare(value) as TS.Identifier).text;
    const declared = source.declared(name);
    if (declared !== undefined && !ts.isFunctionDeclaration(declared) && redisOf(source, declared)) {
      source.rewrite(property, name === 'redis' ? 'redis' : `redis: ${name}`);
      return true;
    }
  } else if (value !== undefined && redisOf(source, value)) {
    const text = source.now(value);
    source.rewrite(property, text === 'redis' ? 'redis' : `redis: ${text}`);
    return true;
  }
  facts.report.leave(
    source,
    property,
    "'storage' is one of your own: taken out, so counters are in process; use 'redis', or 'store' with a class that implements Store",
  );
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
