import type { ExecutionContext } from '@nestjs/common';
import { asMcpContext } from '../../app/transports/refusal.js';
import { asCallExtra } from './call-extra.js';

/**
 * Counts each MCP session separately, as the `key` of limits: `session:<id>`. Without sessions (a stateless server, or stdio), it returns
 * nothing, and `onMissingKey` applies. Clients can open any number of sessions, so limit these with another key.
 */
export function bySession(context: ExecutionContext): string | undefined {
  const args: readonly unknown[] = context.getArgs();
  for (const each of args) {
    const id = (asMcpContext(each)?.getSession() ?? asCallExtra(each))?.sessionId;
    if (typeof id === 'string' && id !== '') return `session:${id}`;
  }
  return undefined;
}
