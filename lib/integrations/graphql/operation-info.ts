import type { GraphQLObjectType, OperationDefinitionNode } from 'graphql';
import { rootFieldsOf } from './field-calls.js';
import { type OperationSource, rootTypeOf } from './operation-source.js';

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
  const names = new Set<string>();
  for (const { node } of rootFieldsOf(source).values()) names.add(node.name.value);
  const [name] = names;
  return name !== undefined && names.size === 1 ? name : '*';
}
