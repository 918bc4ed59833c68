export declare const WHAT_TO_INSTALL: string;
export declare function findRedisServer(): string | undefined;
export declare function clientOf(server: string): string;
export declare function ensureRedisServer(): string;
