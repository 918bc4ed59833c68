export declare function problemsOfSite(folder: string, base?: string): string[];
