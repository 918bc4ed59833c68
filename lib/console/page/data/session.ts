import type { LimitInfo, Session } from '../../api.js';
import { get, RequestError } from './client.js';
import { Store } from './store.js';

export interface SessionState {
  readonly session?: Session;
  /** Whether this user may make changes. */
  readonly canWrite: boolean;
  readonly error?: string;
}

export const session = new Store<SessionState>({ canWrite: false });

/** Loads the session. It includes rates and modes of limits, so it is reloaded after changes. */
export async function loadSession(): Promise<void> {
  try {
    const loaded = await get<Session>('api/session');
    session.value = { session: loaded, canWrite: loaded.writable && (await mayWrite()) };
  } catch (error) {
    session.value = { ...session.value, error: error instanceof Error ? error.message : String(error) };
  }
}

async function mayWrite(): Promise<boolean> {
  try {
    await get('api/write');
    return true;
  } catch (error) {
    if (error instanceof RequestError && error.status >= 400 && error.status < 500) return false;
    throw error;
  }
}

export function limitNamed(name: string): LimitInfo | undefined {
  return session.value.session?.limits.find((limit) => limit.name === name);
}
