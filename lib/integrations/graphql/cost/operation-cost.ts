import type { SelectionSetNode } from 'graphql';
import type { Attempts } from '../../../engine/errors/logger.js';
import { graphqlMessages } from '../../../engine/errors/messages/graphql.js';
import { argumentsOf, type OperationSource, rootTypeOf } from '../operation-source.js';
import { isComposite, type SelectedField, type SelectedType, Selections, TooManySteps } from '../selections.js';
import { isWeight, type QueryCostSettings } from './cost-options.js';
import { type ErrorTree, type FieldTerms, type FieldTermsReader, hasErrorBelow } from './field-terms.js';

/** The cost of an operation that is too large to be counted. It is more than any limit allows. */
const BEYOND_COUNTING = Number.MAX_SAFE_INTEGER;

/** How many fields settling may read more than once: this many, and this many times as many as it has read once. */
const REPEATED_FIELDS = 20_000;
const REPEATED_SHARE = 4;

/** Documents with deeper nesting would exhaust the stack. */
const MAX_DEPTH = 500;

/** The rounding error of sums of fractions such as 0.1 is smaller than this. */
const ROUNDING = 1e-6;

/** The length that an argument sets for fields of a value. */
interface Sized {
  readonly names: ReadonlySet<string>;
  readonly size: number;
}

interface FieldCost {
  readonly terms: FieldTerms;
  readonly weight: number;
  /** The expected number of values. */
  readonly size: number;
  /** The expected points of the fields below each value. */
  readonly below: number;
  readonly sized: Sized | undefined;
}

/**
 * The points of all objects below one whose type is ambiguous. Such an object is counted once per possible type, with everything below it,
 * which would double the work at each level. To prevent that, each object is counted once per set of selections, and the number of fields
 * read again is limited by the size of the response.
 */
class CountedObjects {
  private readonly points = new Map<object, Map<string, number>>();
  private left = REPEATED_FIELDS;

  /** Returns known points, or those that `count` finds. Throws `TooManySteps`. */
  of(data: object, id: string, fields: number, count: () => number): number {
    let known = this.points.get(data);
    if (known === undefined) {
      this.points.set(data, (known = new Map()));
      this.left += REPEATED_SHARE * fields;
    } else {
      const points = known.get(id);
      if (points !== undefined) return points;
      this.left -= fields;
      if (this.left < 0) throw new TooManySteps();
    }
    const points = count();
    known.set(id, points);
    return points;
  }
}

export class OperationCost {
  private readonly selections: Selections;
  private readonly objects = new Map<string, number>();
  private readonly fields = new Map<SelectedField, Map<string, FieldCost | undefined>>();
  /** The objects of the response that is being settled. */
  private ambiguous = new CountedObjects();

  constructor(
    private readonly source: OperationSource,
    private readonly reader: FieldTermsReader,
    private readonly settings: QueryCostSettings,
    private readonly attempts: Attempts,
  ) {
    this.selections = new Selections(source);
  }

  /** The maximum number of points that the operation is expected to cost: a whole number >= 1, or `BEYOND_COUNTING` if it is too large. */
  requested(): number {
    return this.counted(() => {
      const type = rootTypeOf(this.source);
      return type == null ? 0 : this.ofObject(type, [this.source.operation.selectionSet], undefined, 0);
    });
  }

  /**
   * The points of the returned values: a whole number >= 1. Values that an error has removed count with their expected points. If counting
   * takes too many steps, returns the requested points.
   *
   * @param errors where resolvers failed
   */
  returned(data: object, errors: ErrorTree): number {
    const type = rootTypeOf(this.source);
    const sets = [this.source.operation.selectionSet];
    this.ambiguous = new CountedObjects();
    return this.counted(
      () => (type == null ? 0 : this.ofData(data, type, sets, undefined, errors)),
      () => this.requested(),
    );
  }

  private counted(count: () => number, otherwise = () => BEYOND_COUNTING): number {
    try {
      const points = count();
      return points >= BEYOND_COUNTING ? BEYOND_COUNTING : Math.max(1, Math.ceil(points - ROUNDING));
    } catch (error) {
      if (error instanceof TooManySteps) return otherwise();
      throw error;
    }
  }

  /** The expected points of one object. For an abstract type, the most expensive object type counts. */
  private ofObject(
    type: SelectedType,
    sets: readonly SelectionSetNode[],
    sized: Sized | undefined,
    depth: number,
  ): number {
    if (depth > MAX_DEPTH) throw new TooManySteps();
    const id = this.idOf(type, sets, sized);
    let points = this.objects.get(id);
    if (points !== undefined) return points;
    points = 0;
    for (const each of this.selections.typesOf(type, sets)) {
      let sum = 0;
      for (const field of this.selections.of(each, sets).values()) {
        const cost = this.ofField(each, field, sized, depth);
        if (cost !== undefined) sum = bounded(sum + total(cost));
      }
      points = Math.max(points, sum);
    }
    this.objects.set(id, points);
    return points;
  }

  private idOf(type: SelectedType, sets: readonly SelectionSetNode[], sized: Sized | undefined): string {
    const selected = this.selections.idOf(type, sets);
    return sized === undefined ? selected : `${selected} ${idOf(sized)}`;
  }

  /** The expected cost of one field; `undefined` for introspection fields. */
  private ofField(
    type: SelectedType,
    field: SelectedField,
    outer: Sized | undefined,
    depth: number,
  ): FieldCost | undefined {
    let known = this.fields.get(field);
    if (known === undefined) this.fields.set(field, (known = new Map()));
    const id = outer === undefined ? '' : idOf(outer);
    let cost = known.get(id);
    if (cost !== undefined || known.has(id)) return cost;
    this.selections.step();
    cost = this.newField(type, field, outer, depth);
    known.set(id, cost);
    return cost;
  }

  private newField(
    type: SelectedType,
    field: SelectedField,
    outer: Sized | undefined,
    depth: number,
  ): FieldCost | undefined {
    const name = field.node.name.value;
    const terms = this.reader.of(type, name, this.source.schema);
    if (terms === undefined) return undefined;
    const needsArguments = terms.slicing.length > 0 || this.settings.weight !== undefined;
    const given = needsArguments ? argumentsOf(this.source, terms.field, field.node) : undefined;
    const args = given ?? NO_ARGUMENTS;
    const own = sizeOf(terms, args);
    const sized = terms.sized && { names: terms.sized, size: own };
    const below = isComposite(terms.returns) ? this.ofObject(terms.returns, field.sets, sized, depth + 1) : 0;
    let size = 1;
    if (terms.lists > 0) {
      size = outer?.names.has(name) === true ? outer.size : sized === undefined ? own : this.settings.listSize;
      for (let list = 1; list < terms.lists; list++) size = bounded(size * this.settings.listSize);
    }
    return { terms, weight: this.weightOf(type, terms, args), size, below, sized };
  }

  private weightOf(type: SelectedType, terms: FieldTerms, args: Readonly<Record<string, unknown>>): number {
    const { weight } = this.settings;
    if (weight === undefined) return terms.weight;
    const field = { type: type.name, name: terms.field.name, args, returns: terms.returns.name };
    const message = graphqlMessages.weightFailed(`${field.type}.${field.name}`);
    return (
      this.attempts.call(() => weight(field), isWeightOrNone, { message, wrong: graphqlMessages.wrongWeight }) ??
      terms.weight
    );
  }

  /** The points of a returned object. If its type is ambiguous, the most expensive one counts. */
  private ofData(
    data: object,
    type: SelectedType,
    sets: readonly SelectionSetNode[],
    sized: Sized | undefined,
    errors: ErrorTree,
    counted?: CountedObjects,
  ): number {
    const types = this.selections.typesOf(type, sets);
    if (counted === undefined) return this.ofFitting(data, this.typesOfData(data, types, sets), sets, sized, errors);
    const fields = types.reduce((sum, each) => sum + this.selections.of(each, sets).size, 1);
    return counted.of(data, this.idOf(type, sets, sized), fields, () =>
      this.ofFitting(data, this.typesOfData(data, types, sets), sets, sized, errors, counted),
    );
  }

  private ofFitting(
    data: object,
    types: readonly SelectedType[],
    sets: readonly SelectionSetNode[],
    sized: Sized | undefined,
    errors: ErrorTree,
    counted = types.length > 1 ? this.ambiguous : undefined,
  ): number {
    let points = 0;
    for (const each of types) {
      let sum = 0;
      for (const field of this.selections.of(each, sets).values()) {
        const value = (data as Record<string, unknown>)[field.key];
        const cost = value === undefined ? undefined : this.ofField(each, field, sized, 0);
        if (cost !== undefined) sum = bounded(sum + this.ofValue(value, field, cost, errors?.get(field.key), counted));
      }
      points = Math.max(points, sum);
    }
    return points;
  }

  private ofValue(
    value: unknown,
    field: SelectedField,
    cost: FieldCost,
    errors: ErrorTree,
    counted: CountedObjects | undefined,
  ): number {
    const { weight, terms, sized } = cost;
    const below = (each: unknown, at: ErrorTree) =>
      typeof each === 'object' && each !== null && isComposite(terms.returns)
        ? this.ofData(each, terms.returns, field.sets, sized, at, counted)
        : 0;
    // An error below has removed the value.
    if (value === null && hasErrorBelow(errors)) return total(cost);
    if (!Array.isArray(value)) return bounded(weight + below(value, errors));
    let count = 0;
    let sum = 0;
    const add = (list: readonly unknown[], inner: ErrorTree) => {
      for (const [index, each] of list.entries()) {
        const at = inner?.get(index);
        if (Array.isArray(each)) {
          add(each, at);
          continue;
        }
        count++;
        sum = bounded(sum + (each === null && hasErrorBelow(at) ? cost.below : below(each, at)));
      }
    };
    add(value, errors);
    return bounded(Math.max(1, count) * weight + sum);
  }

  /** The types that an object may have, based on the fields that were returned. */
  private typesOfData(
    data: object,
    types: readonly SelectedType[],
    sets: readonly SelectionSetNode[],
  ): readonly SelectedType[] {
    if (types.length === 1) return types;
    const { length } = Object.keys(data);
    const fitting = types.filter((each) => {
      const fields = this.selections.of(each, sets);
      if (fields.size !== length) return false;
      for (const [key, { node }] of fields) {
        if (!Object.hasOwn(data, key)) return false;
        const isNamed = node.name.value === '__typename' && types.some(({ name }) => name === this.nameIn(data, key));
        if (isNamed && this.nameIn(data, key) !== each.name) return false;
      }
      return true;
    });
    return fitting.length === 0 ? types : fitting;
  }

  private nameIn(data: object, key: string): unknown {
    return (data as Record<string, unknown>)[key];
  }
}

function idOf({ size, names }: Sized): string {
  return [size, ...names].join(' ');
}

const NO_ARGUMENTS: Readonly<Record<string, unknown>> = {};

function isWeightOrNone(got: unknown): boolean {
  return got === undefined || isWeight(got);
}

/** A field costs its weight at least once, even if it returns no values. */
function total({ weight, size, below }: FieldCost): number {
  return bounded(Math.max(1, size) * weight + size * below);
}

/** The longest length that a field's arguments request; the assumed one if none of them is a number >= 0. */
function sizeOf({ slicing, assumedSize }: FieldTerms, args: Readonly<Record<string, unknown>>): number {
  let size = -1;
  for (const path of slicing) {
    let value: unknown = args;
    for (const step of path)
      value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[step] : undefined;
    const length = Array.isArray(value) ? value.length : value;
    if (typeof length === 'number' && length >= 0) size = Math.max(size, bounded(Math.ceil(length)));
  }
  return size < 0 ? assumedSize : size;
}

function bounded(points: number): number {
  return points < BEYOND_COUNTING ? points : BEYOND_COUNTING;
}
