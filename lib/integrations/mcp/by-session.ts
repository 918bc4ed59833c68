import type { ExecutionContext } from '@nestjs/common';
import { asMcpContext } from '../../app/transports/mcp-refusal.js';
import { asCallExtra } from './call-extra.js';

/**
 * Counts each session of MCP by itself, as the `key` of limits: `session:<id>`. Without sessions (a stateless server, or stdio),
 * it returns nothing, and `onMissingKey` decides. Clients open as many sessions as they like: limit these by another key.
 */
export function bySession(context: ExecutionContext): string | undefined {
  const args: readonly unknown[] = context.getArgs();
  for (const each of args) {
    const id = (asMcpContext(each)?.getSession() ?? asCallExtra(each))?.sessionId;
    if (typeof id === 'string' && id !== '') return `session:${id}`;
  }
  return undefined;
}
