import type { LimitInfo, Session } from '../../api.js';
import { get, RequestError } from './client.js';
import { messageOf, Store } from './store.js';

export interface ViewProps {
  readonly session: Session;
  /** The limit in the address. */
  readonly limit: string | undefined;
}

export interface SessionState {
  readonly session?: Session;
  /** True if this user may act on keys temporarily. */
  readonly canAct: boolean;
  /** True if this user may make all changes. */
  readonly canWrite: boolean;
  readonly error?: string;
}

export const session = new Store<SessionState>({ canAct: false, canWrite: false });

/** Loads the session. It includes rates and modes of limits, so it is reloaded after changes. */
export async function loadSession(): Promise<void> {
  try {
    const loaded = await get<Session>('api/session');
    const canWrite = loaded.writable && (await may('api/write'));
    session.value = { session: loaded, canWrite, canAct: canWrite || (loaded.actable && (await may('api/act'))) };
  } catch (error) {
    session.value = { ...session.value, error: messageOf(error) };
  }
}

async function may(path: string): Promise<boolean> {
  try {
    await get(path);
    return true;
  } catch (error) {
    if (error instanceof RequestError && error.status >= 400 && error.status < 500) return false;
    throw error;
  }
}

export function limitNamed(name: string): LimitInfo | undefined {
  return session.value.session?.limits.find((limit) => limit.name === name);
}
