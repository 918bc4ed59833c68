export declare const CLUSTER_BUS_OFFSET: number;
export declare function freePort(): Promise<number>;
