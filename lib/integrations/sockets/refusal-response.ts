import type { ServerResponse } from 'node:http';
import type { HttpException } from '@nestjs/common';

/** Sets status and headers of a refused handshake. Returns its body, which is that of a refused HTTP request. */
export function refuse(response: ServerResponse, refusal: HttpException): string {
  const given = refusal.getResponse();
  const status = refusal.getStatus();
  const body = typeof given === 'object' ? given : { statusCode: status, message: given };
  const text = JSON.stringify(body);
  response.statusCode = status;
  if (!response.hasHeader('Content-Type')) response.setHeader('Content-Type', 'application/json; charset=utf-8');
  return text;
}

/** The headers of a response as text, for who writes them: named as HTTP does, since a library may have some of its own. */
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
