import type { ExecutionContext } from '@nestjs/common';
import type { GraphQLObjectType, GraphQLResolveInfo } from 'graphql';
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
