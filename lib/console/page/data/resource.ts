import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { connection } from './connection.js';
import { get, RequestError } from './client.js';
import { useStore } from './store.js';

export interface Resource<T> {
  readonly data: T | undefined;
  /** Why it could not be loaded last time. */
  readonly error: string | undefined;
  reload: () => void;
}

/** The response of a path. It is reloaded every `everyMs`, if given, and after a reconnect. */
export function useResource<T>(path: string | undefined, everyMs?: number): Resource<T> {
  const [state, setState] = useState<{ path?: string; data?: T; error?: string }>({});
  const { epoch } = useStore(connection);
  const asked = useRef(0);

  const reload = useCallback(() => {
    if (path === undefined) return;
    const turn = ++asked.current;
    // Ignores a response that a newer request has overtaken.
    const settle = (next: { data?: T; error?: string }) => {
      if (turn !== asked.current) return;
      setState((last) => ({
        path,
        ...(last.path === path && last.data !== undefined && { data: last.data }),
        ...next,
      }));
    };
    get<T>(path).then(
      (data) => settle({ data }),
      (error: unknown) => settle({ error: error instanceof RequestError ? error.message : String(error) }),
    );
  }, [path]);

  useEffect(() => {
    reload();
    const timer = everyMs === undefined ? undefined : window.setInterval(reload, everyMs);
    return () => {
      window.clearInterval(timer);
      asked.current++;
    };
  }, [reload, everyMs, epoch]);

  const current = state.path === path ? state : {};
  return { data: current.data, error: current.error, reload };
}
