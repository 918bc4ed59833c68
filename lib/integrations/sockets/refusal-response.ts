import type { ServerResponse } from 'node:http';
import type { HttpException } from '@nestjs/common';

/** Sets status and headers for a rejected handshake. Returns the body, which is that of a rejected HTTP request. */
export function refuse(response: ServerResponse, refusal: HttpException): string {
  const given = refusal.getResponse();
  const status = refusal.getStatus();
  const body = typeof given === 'object' ? given : { statusCode: status, message: given };
  const text = JSON.stringify(body);
  response.statusCode = status;
  if (!response.hasHeader('Content-Type')) response.setHeader('Content-Type', 'application/json; charset=utf-8');
  return text;
}

/**
 * The headers of a response as text, for callers that write them. Names use the spelling of HTTP, since a library may add headers of its
 * own.
 */
export function headersOf(response: ServerResponse): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of response.getHeaderNames()) {
    headers[name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())] = textOf(response.getHeader(name));
  }
  return headers;
}

function textOf(value: string | number | string[] | undefined): string {
  return Array.isArray(value) ? value.join(', ') : String(value);
}
