/** Where errors are in a response: a tree of the names and indices of their paths; `undefined` if there are none from here on. */
export type ErrorTree = ReadonlyMap<unknown, ErrorTree> | undefined;

type Node = Map<unknown, Node>;

/** The tree of the paths of errors. */
export function errorTreeOf(errors: unknown): ErrorTree {
  if (!Array.isArray(errors) || errors.length === 0) return undefined;
  const root: Node = new Map();
  for (const error of errors) {
    const { path } = (error ?? {}) as { readonly path?: unknown };
    if (!Array.isArray(path)) continue;
    let node = root;
    for (const step of path as readonly unknown[]) {
      let next = node.get(step);
      if (next === undefined) node.set(step, (next = new Map() as Node));
      node = next;
    }
  }
  return root;
}

/** Whether an error is deeper than a place: if that is `null`, the error has removed what was there. */
export function hasErrorBelow(errors: ErrorTree): boolean {
  return errors !== undefined && errors.size > 0;
}
