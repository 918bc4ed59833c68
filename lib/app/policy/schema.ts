import type { Algorithm } from '../../engine/algorithms/algorithm.js';
import { algorithms } from '../../engine/algorithms/index.js';
import { dataOptions, optionsOf } from '../config/limit-options.js';
import { limitName } from '../../engine/limits/limit-settings.js';
import {
  type JsonSchema,
  type OptionKind,
  type OptionRow,
  type OptionRows,
  requiredOf,
  usualOf,
} from '../../engine/options/option-row.js';
import { LONGEST_KEY } from '../overrides/override-address.js';
import { overrideOptions, policyOptions } from './policy-options.js';
import { listEntrySchema, listsSchema } from './read-lists.js';

const NAMES = limitName.schema;
const KEYS = { type: 'string', pattern: '^([^*]+[*]?)$', maxLength: LONGEST_KEY };

/** The JSON Schema of policies for editors, `limits.schema.json` in the package. It accepts every policy that the reader accepts. */
export function policySchema(): JsonSchema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'A policy of nestjs-sluice',
    type: 'object',
    properties: {
      $schema: { type: 'string' },
      limits: named('Limits by their names: new ones, and options of those that code defines.', {
        $ref: '#/definitions/limit',
      }),
      overrides: named('Overrides by the names of their limits, and by key.', {
        type: 'object',
        propertyNames: KEYS,
        additionalProperties: { $ref: '#/definitions/override' },
      }),
      lists: listsSchema,
    },
    additionalProperties: false,
    definitions: {
      limit: {
        ...objectOf(policyOptions),
        minProperties: 1,
        allOf: algorithms.names.map((algo) => limitOf(algo)),
      },
      entry: listEntrySchema,
      override: { ...objectOf(overrideOptions), minProperties: 1 },
    },
  };
}

/** An empty section is `null` in YAML. */
function named(description: string, additionalProperties: JsonSchema): JsonSchema {
  return { description, type: ['object', 'null'], propertyNames: NAMES, additionalProperties };
}

function objectOf(rows: OptionRows): JsonSchema {
  const properties = Object.entries(dataOptions(rows)).map(([option, row]) => [option, propertyOf(row)]);
  return { type: 'object', properties: Object.fromEntries(properties), additionalProperties: false };
}

function propertyOf(row: OptionRow): JsonSchema {
  const usual = usualOf(row);
  const description = row.text + (usual === undefined ? '' : ` Default: ${usual}.`);
  return { description, ...schemaOf(row.kind) };
}

function schemaOf({ schema, options, or, mayBeEmpty, isOfAlgorithm }: OptionKind): JsonSchema {
  if (options === undefined) return schema!;
  const required = requiredOf(options);
  const own = {
    ...objectOf(options),
    ...(required.length > 0 && { required }),
    ...(required.length === 0 && mayBeEmpty !== true && { minProperties: 1 }),
    ...schema,
    ...(isOfAlgorithm === true && { allOf: algorithms.names.map((algo) => partOf(algo)) }),
  };
  return or?.schema === undefined ? own : { anyOf: [or.schema, own] };
}

/** The options that limits of an algorithm support, and those that they don't. */
function limitOf(algo: string): JsonSchema {
  const algorithm = algorithms.get(algo)!;
  const own = optionsOf(algorithm);
  const required = Object.keys(own).filter((option) => isRequired(own[option]!, algorithm));
  const foreign = Object.keys(policyOptions).filter((option) => option !== 'algo' && !Object.hasOwn(own, option));
  return ifIs(algo, required, foreign);
}

function isRequired({ required, requiredFor }: OptionRow, algorithm: Algorithm): boolean {
  return required ?? requiredFor?.(algorithm) ?? false;
}

/** The part of the schema that is specific to an algorithm. */
function partOf(algo: string): JsonSchema {
  const { options: own } = algorithms.get(algo)!;
  return ifIs(
    algo,
    [],
    Object.keys(algorithms.options).filter((option) => !Object.hasOwn(own, option)),
  );
}

function ifIs(algo: string, required: readonly string[], foreign: readonly string[]): JsonSchema {
  return {
    if: { properties: { algo: { const: algo } }, required: ['algo'] },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: {
      required,
      properties: Object.fromEntries([...required, ...foreign].map((option) => [option, required.includes(option)])),
    },
  };
}
