/** The path of Go; `undefined` if there is none, and none can be installed. */
export declare function findGo(): string | undefined;
