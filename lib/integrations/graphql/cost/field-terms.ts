import {
  type ConstDirectiveNode,
  type ConstValueNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  Kind,
} from 'graphql';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { graphqlMessages } from '../../../engine/errors/messages/graphql.js';
import { whole } from '../../../engine/options/kinds.js';
import type { OptionKind } from '../../../engine/options/option-row.js';
import { isComposite, type SelectedType } from '../selections.js';
import { isWeight, type QueryCostSettings } from './cost-options.js';
import { getOrMake } from '../../../engine/util/objects.js';

/** The cost of a field according to the schema. */
export interface FieldTerms {
  readonly field: GraphQLField<unknown, unknown>;
  /** The points of one value, unless the option `weight` overrides them. */
  readonly weight: number;
  readonly returns: GraphQLNamedType;
  /** The nesting depth of lists; 0 if the field has a single value. */
  readonly lists: number;
  /** The arguments that set the length of the list, each as the path of an input field. */
  readonly slicing: readonly (readonly string[])[];
  /** The length to assume without these arguments. */
  readonly assumedSize: number;
  /** The fields of its value that have this length instead of the field itself. */
  readonly sized: ReadonlySet<string> | undefined;
}

/** Arguments that set the length of a list if the schema doesn't name any. The last one is for federated entities. */
const USUAL_SLICING = ['first', 'last', 'limit', 'representations'];

/** The fields of a connection whose length its arguments set. */
const CONNECTION = ['edges', 'nodes'];

/** Reads the cost of fields from the directives of the GraphQL Cost Directives specification. */
export class FieldTermsReader {
  private readonly known = new WeakMap<object, FieldTerms>();

  constructor(private readonly settings: QueryCostSettings) {}

  /** The terms of a field of a type; `undefined` if the type has no such field. Throws `RateLimitConfigError`. */
  of(type: SelectedType, name: string, schema: GraphQLSchema): FieldTerms | undefined {
    // Introspection fields belong to no type and cost nothing.
    const field = 'getFields' in type ? type.getFields()[name] : undefined;
    if (field === undefined) return undefined;
    let terms = this.known.get(field);
    if (terms === undefined) this.known.set(field, (terms = this.read(type, field, schema)));
    return terms;
  }

  /** Validates the directives of a schema. Throws `RateLimitConfigError`. */
  check(schema: GraphQLSchema): void {
    for (const type of Object.values(schema.getTypeMap())) {
      if (type.name.startsWith('__') || !isComposite(type) || !('getFields' in type)) continue;
      for (const name of Object.keys(type.getFields())) this.of(type as GraphQLObjectType, name, schema);
    }
  }

  private read(type: SelectedType, field: GraphQLField<unknown, unknown>, schema: GraphQLSchema): FieldTerms {
    const place = `${type.name}.${field.name}`;
    const { named: returns, lists } = unwrapped(field.type);
    const ofField = directive([field.astNode], 'cost');
    const ofType = directive([returns.astNode, ...(returns.extensionASTNodes ?? [])], 'cost');
    const { settings } = this;
    const usual = isComposite(returns) ? settings.object : settings.scalar;
    const weight =
      weightOf(ofField, place) ??
      weightOf(ofType, returns.name) ??
      (type === schema.getMutationType() ? settings.mutation : usual);
    const size = directive([field.astNode], 'listSize');
    const args = field.args.map((arg) => arg.name);
    const slicing =
      listSizeArgument(size, 'slicingArguments', place, NAMES) ?? USUAL_SLICING.filter((name) => args.includes(name));
    for (const path of slicing) {
      if (!args.includes(path.split('.')[0]!)) {
        throw new RateLimitConfigError(graphqlMessages.noArgument(place, path, args));
      }
    }
    const sized = listSizeArgument(size, 'sizedFields', place, NAMES) ?? usualSized(returns, lists, slicing);
    return {
      field,
      weight,
      returns,
      lists,
      slicing: slicing.map((path) => path.split('.')),
      assumedSize: listSizeArgument(size, 'assumedSize', place, whole(0)) ?? settings.listSize,
      sized: sized && new Set(sized),
    };
  }
}

/** A connection, as Relay specifies it, passes its length on to its fields. */
function usualSized(returns: GraphQLNamedType, lists: number, slicing: readonly string[]): string[] | undefined {
  if (lists > 0 || slicing.length === 0 || !('getFields' in returns)) return undefined;
  const fields = Object.keys(returns.getFields());
  const sized = CONNECTION.filter((name) => fields.includes(name));
  return sized.length === 0 ? undefined : sized;
}

/** The values of a directive's arguments by name; `undefined` without the directive. */
type Directive = ReadonlyMap<string, ConstValueNode>;

interface Annotated {
  readonly directives?: readonly ConstDirectiveNode[] | undefined;
}

function directive(nodes: readonly (Annotated | null | undefined)[], name: string): Directive | undefined {
  const found = nodes.flatMap((node) => node?.directives ?? []).find((each) => each.name.value === name);
  return found && new Map((found.arguments ?? []).map((arg) => [arg.name.value, arg.value]));
}

function weightOf(cost: Directive | undefined, place: string): number | undefined {
  if (cost === undefined) return undefined;
  const given = literal(cost.get('weight'));
  const weight = typeof given === 'string' && given.trim() !== '' ? Number(given) : given;
  if (isWeight(weight)) return weight;
  throw new RateLimitConfigError(graphqlMessages.wrongDirective(place, '@cost', 'weight', given, 'a number >= 0'));
}

/** An argument of @listSize. Throws `RateLimitConfigError` for an invalid value. */
function listSizeArgument<T>(
  size: Directive | undefined,
  argument: string,
  place: string,
  { expected, isValid }: OptionKind<T>,
): T | undefined {
  const given = literal(size?.get(argument)) ?? undefined;
  if (given === undefined || isValid(given)) return given as T | undefined;
  throw new RateLimitConfigError(graphqlMessages.wrongDirective(place, '@listSize', argument, given, expected));
}

const NAMES: OptionKind<readonly string[]> = {
  expected: 'a list of names',
  isValid: (given) => Array.isArray(given) && given.every((each) => typeof each === 'string'),
};

function literal(node: ConstValueNode | undefined): unknown {
  switch (node?.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return Number(node.value);
    case Kind.STRING:
    case Kind.BOOLEAN:
    case Kind.ENUM:
      return node.value;
    case Kind.LIST:
      return node.values.map(literal);
    case Kind.NULL:
      return null;
    default:
      return undefined;
  }
}

function unwrapped(type: GraphQLOutputType): { readonly named: GraphQLNamedType; readonly lists: number } {
  let inner: object = type;
  let lists = 0;
  while ('ofType' in inner) {
    if ((inner as { [Symbol.toStringTag]?: string })[Symbol.toStringTag] === 'GraphQLList') lists++;
    inner = inner.ofType as object;
  }
  return { named: inner as GraphQLNamedType, lists };
}

/** The places of errors in a response: a tree of the names and indices of their paths; `undefined` if there are none below. */
export type ErrorTree = ReadonlyMap<unknown, ErrorTree> | undefined;

type Node = Map<unknown, Node>;

export function errorTreeOf(errors: unknown): ErrorTree {
  if (!Array.isArray(errors) || errors.length === 0) return undefined;
  const root: Node = new Map();
  for (const error of errors) {
    const { path } = (error ?? {}) as { readonly path?: unknown };
    if (!Array.isArray(path)) continue;
    let node = root;
    for (const step of path as readonly unknown[]) {
      node = getOrMake(node, step, (): Node => new Map());
    }
  }
  return root;
}

/** Returns true if there is an error below a place. If the value there is `null`, that error has removed it. */
export function hasErrorBelow(errors: ErrorTree): boolean {
  return errors !== undefined && errors.size > 0;
}
