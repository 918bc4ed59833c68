import type { ExecutionContext } from '@nestjs/common';
import type { GraphQLObjectType, GraphQLResolveInfo, OperationDefinitionNode } from 'graphql';
import { bindsOwnGuard, type GuardCheck } from '../../app/rules/guard-check.js';
import type { HandlerClasses } from '../../app/rules/handler-classes.js';
import type { HandlerClass } from '../../app/rules/namespaces.js';
import { rootFieldOf } from '../../app/rules/route-names.js';
import { argumentsOf, coercedOf, type OperationSource, rootTypeOf } from './operation-source.js';
import { type SelectedField, Selections, TooManySteps } from './selections.js';

/** The indices of the arguments of a field: parent value, arguments, context, info. */
const CONTEXT = 2;
const INFO = 3;

/** The `info` of a field's call; `undefined` for calls of another kind. */
export function infoOf(context: ExecutionContext): GraphQLResolveInfo | undefined {
  if (context.getType<string>() !== 'graphql') return undefined;
  const { [CONTEXT]: shared, [INFO]: info } = context.getArgs<(object | null | undefined)[]>();
  const isField = typeof shared === 'object' && shared !== null && typeof info === 'object' && info !== null;
  return isField && 'operation' in info && 'path' in info ? (info as GraphQLResolveInfo) : undefined;
}

/** The operation that a field's call belongs to. */
export function sourceOf(context: ExecutionContext, info: GraphQLResolveInfo): OperationSource {
  const { schema, operation, fragments, variableValues } = info;
  const shared = context.getArgs<object[]>()[CONTEXT]!;
  return { schema, operation, fragments, variableValues, variables: coercedOf(variableValues), context: shared };
}

/** The fields that an operation selects on its root type. */
export function rootFieldsOf(source: OperationSource): ReadonlyMap<string, SelectedField> {
  const type = rootTypeOf(source);
  try {
    return type == null ? new Map() : new Selections(source).of(type, [source.operation.selectionSet]);
  } catch (error) {
    // Its cost is more than any limit allows. If no limit counts the cost, its fields are checked one by one.
    if (error instanceof TooManySteps) return new Map();
    throw error;
  }
}

/** The arguments that the resolver of a field will get; `undefined` if it won't be called. */
export function callArguments(source: OperationSource, { key, node, nodes }: SelectedField): unknown[] | undefined {
  const parentType = rootTypeOf(source) as GraphQLObjectType;
  const field = parentType.getFields()[node.name.value];
  const args = field && argumentsOf(source, field, node);
  if (args === undefined) return undefined;
  const { schema, fragments, operation: operationNode, variableValues } = source;
  const info = {
    schema,
    fragments,
    rootValue: undefined,
    operation: operationNode,
    variableValues,
    fieldName: node.name.value,
    fieldNodes: nodes,
    returnType: field!.type,
    parentType,
    path: { prev: undefined, key, typename: parentType.name },
  };
  return [undefined, args, source.context, info];
}

/** Stands for the `info` of a field where an operation is checked as a whole. */
export class OperationInfo {
  readonly schema: OperationSource['schema'];
  readonly fragments: OperationSource['fragments'];
  readonly rootValue = undefined;
  readonly operation: OperationDefinitionNode;
  readonly variableValues: unknown;
  readonly fieldNodes = [] as const;
  private name: string | undefined;

  constructor(private readonly source: OperationSource) {
    this.schema = source.schema;
    this.fragments = source.fragments;
    this.operation = source.operation;
    this.variableValues = source.variableValues;
  }

  /**
   * The field that the operation selects, `*` if it selects several. It is looked up when a hook or a subscriber reads the route.
   * The operation's own name is not part of it: clients choose that, and could make any number of routes.
   */
  get fieldName(): string {
    return (this.name ??= onlyField(this.source));
  }

  get parentType(): GraphQLObjectType | null | undefined {
    return rootTypeOf(this.source);
  }
}

function onlyField(source: OperationSource): string {
  const fields = [...rootFieldsOf(source).values()];
  const [name = '*', other] = new Set(fields.map(({ node }) => node.name.value));
  return other === undefined ? name : '*';
}

interface ResolvedField {
  readonly type: HandlerClass;
  readonly handler: Function;
}

/** Finds the methods that resolve queries, mutations and subscriptions and that the guard covers. */
export class ResolvedFields {
  private known: ReadonlyMap<string, ResolvedField | undefined> | undefined;

  constructor(
    private readonly classes: HandlerClasses,
    private readonly guards: GuardCheck,
  ) {}

  /**
   * The method of a field of `Query`, `Mutation` or `Subscription`; `undefined` if there is none, if the guard doesn't cover it, or if several
   * classes have such a field. These usually belong to several servers of the app, and only the guard sees which one is called.
   */
  of(operation: string, field: string): ResolvedField | undefined {
    return (this.known ??= this.all()).get(`${operation} ${field}`);
  }

  private all(): Map<string, ResolvedField | undefined> {
    const all = new Map<string, ResolvedField | undefined>();
    const { isEverywhere } = this.guards;
    for (const type of this.classes.known()) {
      for (const [method, handler] of this.classes.handlers(type)) {
        const field = rootFieldOf(type, handler, method);
        if (field === undefined) continue;
        if (!isEverywhere && !bindsOwnGuard(type) && !bindsOwnGuard(handler)) continue;
        const id = `${field.operation} ${field.name}`;
        const isOnly = !all.has(id) || all.get(id)?.type === type;
        all.set(id, isOnly ? { type, handler: handler as Function } : undefined);
      }
    }
    return all;
  }
}
