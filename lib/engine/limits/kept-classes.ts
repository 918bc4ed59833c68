/**
 * The classes that the state of a counter may contain, in addition to numbers, lists and plain objects. Stores write them by these names.
 */
export const KEPT_CLASSES = new Map<string, new () => object>();
