import { Kind } from 'graphql';
import type {
  DirectiveNode,
  FieldNode,
  GraphQLAbstractType,
  GraphQLInterfaceType,
  GraphQLNamedType,
  GraphQLObjectType,
  SelectionNode,
  SelectionSetNode,
} from 'graphql';
import type { OperationSource } from './operation-source.js';

/** A type that selections can be applied to. For an interface, it represents all types that no fragment names. */
export type SelectedType = GraphQLObjectType | GraphQLInterfaceType | GraphQLAbstractType;

/** One field of a response object. Several selections with the same response name are one field. */
export interface SelectedField {
  /** Its name in the response. */
  readonly key: string;
  readonly node: FieldNode;
  readonly nodes: FieldNode[];
  readonly sets: SelectionSetNode[];
}

/** More steps than any honest document takes. They run faster than parsing a document that needs them. */
const MAX_STEPS = 20_000;

/** Cached results for selections: by the list itself, and by an id that equal lists share. */
class Found<T> {
  readonly byList = new Map<readonly SelectionSetNode[], Map<SelectedType, T>>();
  readonly byId = new Map<string, T>();
}

/** A document takes too many steps to be read. */
export class TooManySteps extends Error {}

/**
 * The selections of an operation. Each part is read once, no matter how often fragments repeat it, in a limited number of steps: a few
 * lines of fragments can select billions of fields.
 */
export class Selections {
  private readonly ids = new Map<SelectionSetNode, number>();
  private readonly fields = new Found<ReadonlyMap<string, SelectedField>>();
  private readonly objects = new Found<readonly SelectedType[]>();
  private steps = 0;

  constructor(private readonly source: OperationSource) {}

  /** Counts a step. Throws `TooManySteps`. */
  step(): void {
    if (++this.steps > MAX_STEPS) throw new TooManySteps();
  }

  /** Identifies selections of a type. */
  idOf(type: SelectedType, sets: readonly SelectionSetNode[]): string {
    let id = type.name;
    for (const set of sets) {
      let number = this.ids.get(set);
      if (number === undefined) this.ids.set(set, (number = this.ids.size));
      id += ` ${number}`;
    }
    return id;
  }

  of(type: SelectedType, sets: readonly SelectionSetNode[]): ReadonlyMap<string, SelectedField> {
    return this.once(this.fields, type, sets, () => {
      const fields = new Map<string, SelectedField>();
      const visited = new Set<string>();
      for (const set of sets) this.collect(type, set, fields, visited);
      return fields;
    });
  }

  /** The object types that selections can match: for an abstract type, the type itself and all types that a fragment may single out. */
  typesOf(type: SelectedType, sets: readonly SelectionSetNode[]): readonly SelectedType[] {
    if (!isAbstract(type)) return [type];
    return this.once(this.objects, type, sets, () => {
      const types = new Set<SelectedType>([type]);
      const possible = new Set<SelectedType>(this.source.schema.getPossibleTypes(type));
      const visited = new Set<string>();
      for (const set of sets) this.narrow(type, possible, set, types, visited);
      return [...types];
    });
  }

  /**
   * Returns the cached result for selections, or computes it. All objects of a list have the same selections, and there may be many
   * objects.
   */
  private once<T>({ byList, byId }: Found<T>, type: SelectedType, sets: readonly SelectionSetNode[], find: () => T): T {
    let ofList = byList.get(sets);
    if (ofList === undefined) byList.set(sets, (ofList = new Map()));
    let found = ofList.get(type);
    if (found !== undefined) return found;
    const id = this.idOf(type, sets);
    found = byId.get(id);
    if (found === undefined) byId.set(id, (found = find()));
    ofList.set(type, found);
    return found;
  }

  private collect(
    type: SelectedType,
    { selections }: SelectionSetNode,
    fields: Map<string, SelectedField>,
    visited: Set<string>,
  ): void {
    for (const selection of selections) {
      this.step();
      if (!this.isIncluded(selection)) continue;
      if (selection.kind === Kind.FIELD) {
        const key = selection.alias?.value ?? selection.name.value;
        let field = fields.get(key);
        if (field === undefined) fields.set(key, (field = { key, node: selection, nodes: [], sets: [] }));
        field.nodes.push(selection);
        if (selection.selectionSet !== undefined) field.sets.push(selection.selectionSet);
        continue;
      }
      const inner = this.innerOf(selection, visited);
      if (inner !== undefined && this.applies(inner.on, type)) this.collect(type, inner.set, fields, visited);
    }
  }

  private narrow(
    type: GraphQLAbstractType,
    possible: ReadonlySet<SelectedType>,
    { selections }: SelectionSetNode,
    types: Set<SelectedType>,
    visited: Set<string>,
  ): void {
    for (const selection of selections) {
      this.step();
      if (selection.kind === Kind.FIELD || !this.isIncluded(selection)) continue;
      const inner = this.innerOf(selection, visited);
      if (inner === undefined) continue;
      const on = inner.on === undefined ? undefined : this.source.schema.getType(inner.on);
      if (on !== undefined && !this.applies(inner.on, type)) {
        for (const each of isAbstract(on) ? this.source.schema.getPossibleTypes(on) : [on as GraphQLObjectType]) {
          this.step();
          if (possible.has(each)) types.add(each);
        }
      }
      this.narrow(type, possible, inner.set, types, visited);
    }
  }

  /** The selections and the type of a fragment; `undefined` if it was visited before. */
  private innerOf(
    selection: Exclude<SelectionNode, FieldNode>,
    visited: Set<string>,
  ): { readonly on: string | undefined; readonly set: SelectionSetNode } | undefined {
    if (selection.kind === Kind.INLINE_FRAGMENT) {
      return { on: selection.typeCondition?.name.value, set: selection.selectionSet };
    }
    const name = selection.name.value;
    if (visited.has(name)) return undefined;
    visited.add(name);
    const fragment = this.source.fragments[name];
    return fragment && { on: fragment.typeCondition.name.value, set: fragment.selectionSet };
  }

  /** Returns true if a fragment on a type applies to all objects of another type. */
  private applies(on: string | undefined, type: SelectedType): boolean {
    if (on === undefined || on === type.name) return true;
    const condition = this.source.schema.getType(on);
    return isAbstract(condition) && this.source.schema.isSubType(condition, type as GraphQLObjectType);
  }

  private isIncluded({ directives = [] }: SelectionNode): boolean {
    for (const directive of directives) {
      const { value } = directive.name;
      if (value === 'skip' && this.conditionOf(directive) === true) return false;
      if (value === 'include' && this.conditionOf(directive) === false) return false;
    }
    return true;
  }

  private conditionOf({ arguments: args = [] }: DirectiveNode): unknown {
    const value = args.find(({ name }) => name.value === 'if')?.value;
    if (value?.kind === Kind.VARIABLE) return this.source.variables[value.name.value];
    return value?.kind === Kind.BOOLEAN ? value.value : undefined;
  }
}

function isAbstract(type: GraphQLNamedType | undefined): type is GraphQLAbstractType {
  const kind = type?.[Symbol.toStringTag];
  return kind === 'GraphQLInterfaceType' || kind === 'GraphQLUnionType';
}

/** Returns true if values of a type have fields to select. */
export function isComposite(type: GraphQLNamedType | undefined): type is SelectedType {
  return type?.[Symbol.toStringTag] === 'GraphQLObjectType' || isAbstract(type);
}
