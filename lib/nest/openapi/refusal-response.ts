import { STATUS_CODES } from 'node:http';
import { HttpStatus } from '@nestjs/common';
import { PROBLEM_TYPE } from '../../app/http/problem.js';
import type { RateLimitSettings } from '../../app/config/settings.js';

/** A response in the form of OpenAPI. */
export interface DescribedResponse {
  readonly description: string;
  readonly headers?: Readonly<Record<string, object>>;
  readonly content?: Readonly<Record<string, object>>;
}

type Headers = Readonly<Record<string, object>>;

const text = (description: string) => ({ description, schema: { type: 'string' } });
const whole = (description: string) => ({ description, schema: { type: 'integer', minimum: 0 } });

const POLICY = text('The limits: quota and window in seconds');
const numbers = (prefix: string): Headers => ({
  [`${prefix}-Limit`]: whole('Units that can be allowed at once'),
  [`${prefix}-Remaining`]: whole('Units that are left'),
  [`${prefix}-Reset`]: whole('Seconds until a request fits again'),
});

/** The headers of each format. Those that functions set are not known. */
const HEADERS: ReadonlyMap<unknown, Headers> = new Map<unknown, Headers>([
  [
    'draft-8',
    { 'RateLimit-Policy': POLICY, RateLimit: text('The limits: units that are left, and seconds until more fit') },
  ],
  ['draft-6', { 'RateLimit-Policy': POLICY, ...numbers('RateLimit') }],
  ['legacy', numbers('X-RateLimit')],
]);

const TOO_MANY: number = HttpStatus.TOO_MANY_REQUESTS;
const SERVER_ERRORS: number = HttpStatus.INTERNAL_SERVER_ERROR;

function descriptionOf(status: number): string {
  if (status === TOO_MANY) return 'Too many requests';
  return status >= SERVER_ERRORS ? 'Overloaded' : (STATUS_CODES[status] ?? 'Refused');
}

const names = { type: 'array', items: { type: 'string' } };

const usualBody = (status: number) => ({
  type: 'object',
  required: ['statusCode', 'message', 'error', 'limits'],
  properties: {
    statusCode: { type: 'integer', enum: [status] },
    message: { type: 'string' },
    error: { type: 'string' },
    limits: { ...names, description: 'The limits that refused' },
  },
});

const problemBody = (status: number) => ({
  type: 'object',
  required: ['type', 'title', 'status', 'violated-policies'],
  properties: {
    type: { type: 'string', format: 'uri' },
    title: { type: 'string' },
    status: { type: 'integer', enum: [status] },
    detail: { type: 'string' },
    'violated-policies': { ...names, description: 'The limits that refused' },
  },
});

/** Describes the response to a request that limits reject with this status. */
export function refusalResponse(
  { options, problem, body, retryAfter }: RateLimitSettings,
  status: number,
): DescribedResponse {
  const formats = [options.headers ?? 'draft-8'].flat();
  // Nor is the body known if a function creates it.
  const isKnown = body === undefined && options.answer === undefined;
  const schema = !isKnown ? { type: 'object' } : problem ? problemBody(status) : usualBody(status);
  return {
    description: descriptionOf(status),
    headers: Object.assign(
      retryAfter ? { 'Retry-After': whole('Seconds after which the request fits') } : {},
      ...formats.map((format) => HEADERS.get(format)),
    ) as Record<string, object>,
    content: { [problem ? PROBLEM_TYPE : 'application/json']: { schema } },
  };
}
