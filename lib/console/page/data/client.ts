import type { FieldError, Problem } from '../../api.js';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { connection, messageOf, useStore } from './store.js';

interface Resource<T> {
  readonly data: T | undefined;
  /** The error of the last attempt to load it. */
  readonly error: string | undefined;
  reload: () => void;
}

/**
 * The response of a path. It is loaded again every `everyMs` milliseconds, if set, and after a reconnect. With a `body` it is posted; these
 * responses take more of the server, so a hidden page doesn't load them again.
 */
export function useResource<T>(path: string | undefined, everyMs?: number, body?: object): Resource<T> {
  const [state, setState] = useState<{ asked?: string | undefined; data?: T | undefined; error?: string }>({});
  const { epoch } = useStore(connection);
  const asked = body === undefined ? path : `${path} ${JSON.stringify(body)}`;
  const turns = useRef(0);

  const reload = useCallback(() => {
    if (path === undefined) return;
    const turn = ++turns.current;
    // Ignores a response if a newer request has already been answered.
    const settle = (next: { data?: T; error?: string }) => {
      if (turn !== turns.current) return;
      setState((last) => ({ ...(last.asked === asked && { data: last.data }), asked, ...next }));
    };
    const answer = body === undefined ? get<T>(path) : post<T>(path, body);
    answer.then(
      (data) => settle({ data }),
      (error: unknown) => settle({ error: messageOf(error) }),
    );
  }, [asked]);

  useEffect(() => {
    reload();
    const again = () => {
      if (body === undefined || !document.hidden) reload();
    };
    const timer = everyMs === undefined ? undefined : window.setInterval(again, everyMs);
    return () => {
      window.clearInterval(timer);
      turns.current++;
    };
  }, [reload, everyMs, epoch]);

  const current = state.asked === asked ? state : {};
  return { data: current.data, error: current.error, reload };
}

/** The base URL of the console. The page's own address may have no slash at the end. */
const BASE = new URL(
  document.querySelector<HTMLMetaElement>('meta[name="console-base"]')?.content || './',
  document.baseURI,
);

export class RequestError extends Error {
  constructor(
    message: string,
    /** The status of the response; 0 without a response. */
    readonly status: number,
    readonly fields: readonly FieldError[] = [],
  ) {
    super(message);
  }
}

/** The URL of a path below the console's. */
export function urlOf(path: string): string {
  return new URL(path, BASE).href;
}

export async function get<T>(path: string): Promise<T> {
  return answerOf<T>(await ask(path, { headers: { accept: 'application/json' } }));
}

export async function post<T>(path: string, body: object): Promise<T> {
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    // Forms cannot send it.
    'x-rate-limit-console': '1',
  };
  return answerOf<T>(await ask(path, { method: 'POST', headers, body: JSON.stringify(body) }));
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(urlOf(path), { ...init, cache: 'no-store', credentials: 'same-origin', redirect: 'manual' });
  } catch {
    throw new RequestError("The app doesn't respond. Is it running, and are you online?", 0);
  }
}

async function answerOf<T>(response: Response): Promise<T> {
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
  // The response of a proxy may have any body.
  const problem = (await response.json().catch(() => null)) as Partial<Problem> | null;
  throw new RequestError(problem?.detail ?? sentenceOf(response.status), response.status, problem?.errors);
}

function sentenceOf(status: number): string {
  if (status === 401 || status === 0) return 'You are no longer signed in. Sign in, and reload this page.';
  if (status === 403) return 'You are not allowed to do this.';
  if (status === 429) return 'Too many requests to the console. Wait a moment.';
  return `The app answered with status ${status}.`;
}
