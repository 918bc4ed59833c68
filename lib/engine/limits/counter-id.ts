import type { CompiledLimit } from './compiled-limit.js';
import { boundedIdentity } from './identity.js';

/** Identifies a counter within this process. Its length is bounded. */
export function counterId({ id }: Pick<CompiledLimit, 'id'>, identity: string): string {
  return id + boundedIdentity(identity);
}

/** The same for all generations of the limit together. */
export function lineageId({ lineage }: CompiledLimit, identity: string): string {
  return lineage + boundedIdentity(identity);
}
