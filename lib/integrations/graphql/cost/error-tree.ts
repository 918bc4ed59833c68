/** The places of errors in a response: a tree of the names and indices of their paths; `undefined` if there are none below. */
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

/** Returns true if there is an error below a place. If the value there is `null`, that error has removed it. */
export function hasErrorBelow(errors: ErrorTree): boolean {
  return errors !== undefined && errors.size > 0;
}
