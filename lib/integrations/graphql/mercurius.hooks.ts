import type { DocumentNode, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import type { Operation } from './operation.js';
import { operationsOf, sourceIn } from './operation-source.js';
import type { Operations } from './operations.js';

interface MercuriusContext {
  readonly reply?: { readonly request?: { readonly body?: unknown; readonly query?: unknown } };
  /** The index of the operation in a batch. */
  readonly operationId?: number;
}

interface Execution {
  readonly data?: unknown;
  readonly errors?: unknown;
  extensions?: Record<string, unknown>;
}

interface Mercurius {
  readonly schema: GraphQLSchema;
  addHook(
    name: 'preExecution',
    hook: (schema: GraphQLSchema, document: DocumentNode, context: object, variables: unknown) => Promise<void>,
  ): void;
  addHook(name: 'onResolution', hook: (execution: Execution, context: object) => Promise<void>): void;
}

/**
 * Registers the hooks that check each operation before it is executed. Returns true if the app uses Mercurius. Throws
 * `RateLimitConfigError` for an invalid directive in the schema.
 */
export function hookIntoMercurius(server: unknown, operations: Operations): boolean {
  const { graphql } = (server ?? {}) as { readonly graphql?: Mercurius };
  if (typeof graphql?.addHook !== 'function') return false;
  operations.checkSchema(graphql.schema);
  const begun = new WeakMap<object, Operation>();
  graphql.addHook('preExecution', async (schema, document, context, given) => {
    const operation = chosen(document, context);
    // With several operations, the one that runs may be known only when its first field reaches the guard.
    const source = operation && sourceIn(document, schema, operation, given, context);
    if (source === undefined) return;
    const begins = operations.begin(source);
    try {
      await begins.decision;
      begun.set(context, begins);
    } catch (error) {
      throw withReport(error, begins);
    }
  });
  graphql.addHook('onResolution', async (execution, context) => {
    const operation = begun.get(context);
    if (operation === undefined) return;
    operations.end(operation, { data: execution.data, errors: execution.errors });
    const { report } = operation;
    if (report !== undefined) execution.extensions = { ...execution.extensions, cost: report };
  });
  return true;
}

/** Mercurius sends only the error of an operation that doesn't run, so the error carries the cost report. */
function withReport(error: unknown, { report }: Operation): unknown {
  if (report === undefined || typeof error !== 'object' || error === null) return error;
  const { extensions } = error as { extensions?: object };
  return Object.assign(error, { extensions: { ...extensions, cost: report } });
}

/** The operation that the request names, or the only one. Mercurius doesn't pass its name to hooks. */
function chosen(document: DocumentNode, context: object): OperationDefinitionNode | undefined {
  const all = operationsOf(document);
  if (all.length === 1) return all[0];
  const { reply, operationId } = context as MercuriusContext;
  const { body, query } = reply?.request ?? {};
  const sent: unknown = Array.isArray(body) ? body[operationId ?? 0] : (body ?? query);
  const { operationName } = (sent ?? {}) as { readonly operationName?: unknown };
  return typeof operationName === 'string' ? all.find(({ name }) => name?.value === operationName) : undefined;
}
