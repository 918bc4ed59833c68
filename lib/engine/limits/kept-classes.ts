/** What the state of a counter may hold besides numbers, lists and plain objects: classes that stores write by these names. */
export const KEPT_CLASSES = new Map<string, new () => object>();
