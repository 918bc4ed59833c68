import { getArgumentValues, getVariableValues, Kind } from 'graphql';
import type {
  DocumentNode,
  FieldNode,
  FragmentDefinitionNode,
  GraphQLField,
  GraphQLObjectType,
  GraphQLSchema,
  OperationDefinitionNode,
} from 'graphql';

/** An operation that a server is about to execute, in a form that all servers provide. */
export interface OperationSource {
  readonly schema: GraphQLSchema;
  readonly operation: OperationDefinitionNode;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode | undefined>>;
  /** The coerced values of its variables. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** The same values, in the form that GraphQL passes on. */
  readonly variableValues: unknown;
  /** The context that all of its resolvers share. No other operation uses it. */
  readonly context: object;
}

function fragmentsOf({ definitions }: DocumentNode): Record<string, FragmentDefinitionNode> {
  const fragments = Object.create(null) as Record<string, FragmentDefinitionNode>;
  for (const each of definitions) if (each.kind === Kind.FRAGMENT_DEFINITION) fragments[each.name.value] = each;
  return fragments;
}

export function operationsOf({ definitions }: DocumentNode): OperationDefinitionNode[] {
  return definitions.filter((each) => each.kind === Kind.OPERATION_DEFINITION);
}

/** An operation of a document; `undefined` if the `given` variables are invalid, so that it won't run. */
export function sourceIn(
  document: DocumentNode,
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: unknown,
  context: object,
): OperationSource | undefined {
  const inputs = typeof given === 'object' && given !== null ? (given as Record<string, unknown>) : {};
  const found = getVariableValues(schema, operation.variableDefinitions ?? [], inputs) as {
    readonly coerced?: Record<string, unknown>;
    readonly variableValues?: { readonly coerced: Record<string, unknown> };
  };
  // GraphQL 17 wraps them.
  const variables = found.coerced ?? found.variableValues?.coerced;
  if (variables === undefined) return undefined;
  const variableValues = found.variableValues ?? variables;
  return { schema, operation, fragments: fragmentsOf(document), variables, variableValues, context };
}

/** The values of variables, as resolvers get them. */
export function coercedOf(variableValues: unknown): Readonly<Record<string, unknown>> {
  const { coerced, sources } = (variableValues ?? {}) as { readonly coerced?: object; readonly sources?: object };
  const isWrapped = typeof coerced === 'object' && typeof sources === 'object';
  return (isWrapped ? coerced : (variableValues ?? {})) as Record<string, unknown>;
}

/** The arguments of a field; `undefined` if they are invalid, so that its resolver won't run. */
export function argumentsOf(
  { variableValues }: OperationSource,
  field: GraphQLField<unknown, unknown>,
  node: FieldNode,
): Record<string, unknown> | undefined {
  try {
    return getArgumentValues(field, node, variableValues as Record<string, unknown>);
  } catch {
    return undefined;
  }
}

/** The type whose fields an operation selects. */
export function rootTypeOf({ schema, operation }: OperationSource): GraphQLObjectType | null | undefined {
  return schema.getRootType(operation.operation);
}
