import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { connection } from './connection.js';
import { get, RequestError } from './client.js';
import { useStore } from './store.js';

export interface Resource<T> {
  readonly data: T | undefined;
  /** Why it could not be loaded the last time. */
  readonly error: string | undefined;
  reload: () => void;
}

/** What a path answers. It is loaded again every `everyMs`, if given, and when the connection comes back. */
export function useResource<T>(path: string | undefined, everyMs?: number): Resource<T> {
  const [state, setState] = useState<{ path?: string; data?: T; error?: string }>({});
  const { epoch } = useStore(connection);
  const asked = useRef(0);

  const reload = useCallback(() => {
    if (path === undefined) return;
    const turn = ++asked.current;
    // An answer that a newer request has overtaken is of no use.
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
