/** A route of the app, with requests that bring it to its limit. The app tells them. */
export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** What limits it, in words. */
  readonly limit: string;
  /** How its limits give units back. */
  readonly algo: string;
  /** The code that limits it. */
  readonly code: string;
  /** Where the page about it is. */
  readonly docs: string;
  /** Among the first to be shown. */
  readonly isTelling?: boolean;
  /** So many requests bring it there. */
  readonly requests: number;
  /** `name: value`. */
  readonly headers?: readonly string[];
  readonly body?: string;
}

/** Who sends the requests, where a route asks for that. */
export interface User {
  readonly id: string;
  readonly plan: string;
}

export function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

/** Whether a route asks who sends the request. */
export function needsUser({ headers = [] }: Route): boolean {
  return headers.some((header) => header.startsWith('x-user:'));
}

/** What `fetch` is asked for. */
export function requestOf(route: Route, { id, plan }: User): RequestInit {
  const headers: Record<string, string> = needsUser(route) ? { 'x-user': id, 'x-plan': plan } : {};
  if (route.body === undefined) return { headers, cache: 'no-store' };
  headers['content-type'] = 'application/x-www-form-urlencoded';
  return { method: route.method, headers, body: route.body, cache: 'no-store' };
}
