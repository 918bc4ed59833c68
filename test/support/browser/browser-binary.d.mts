export declare const WHAT_TO_INSTALL: string;
export declare function findBrowser(): string | undefined;
export declare function ensureBrowser(): string;
export declare function opensPages(patterns: readonly string[], tier?: string): boolean;
