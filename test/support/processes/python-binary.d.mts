export declare function ensurePython(): string;
