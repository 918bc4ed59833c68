import { STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http';
import { argumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { isObject } from '../../engine/options/values.js';
import { MAX_STATUS, MIN_STATUS, type RefusalResponse } from '../../app/http/refusal-answer.js';

const PARTS = ['status', 'body', 'headers'];

/** Reads the response that a function of the app returned for a rejection. Throws if it is invalid. */
export function readRefusal(made: unknown): Partial<RefusalResponse> {
  if (
    !isObject(made) ||
    !hasOnly(made, PARTS) ||
    !isStatus(made['status']) ||
    !isPart(made['body']) ||
    !isPart(made['headers'])
  ) {
    throw argumentError('SLUICE_INVALID_RESULT', messages.wrongRefusal(made));
  }
  if (made['body'] !== undefined) assertSendable(made['body'] as object);
  for (const [name, value] of Object.entries(made['headers'] ?? {})) {
    validateHeaderName(name);
    validateHeaderValue(name, value as string);
  }
  return made;
}

/**
 * Throws if a body cannot be serialized, for example because it contains itself or a BigInt. Sending it would turn the rejection into a
 * different error.
 */
export function assertSendable(body: object): void {
  JSON.stringify(body);
}

/** The usual body of a rejection with a different status, which it contains. */
export function withStatus(body: object, status: number): object {
  const named: Record<string, unknown> = { ...body };
  if ('statusCode' in named) Object.assign(named, { statusCode: status, error: STATUS_CODES[status] ?? 'Error' });
  else if (typeof named['status'] === 'number') named['status'] = status;
  return named;
}

function hasOnly(made: object, parts: readonly string[]): boolean {
  return Object.keys(made).every((part) => parts.includes(part));
}

function isStatus(value: unknown): boolean {
  if (value === undefined) return true;
  return Number.isInteger(value) && (value as number) >= MIN_STATUS && (value as number) <= MAX_STATUS;
}

function isPart(value: unknown): boolean {
  return value === undefined || isObject(value);
}
