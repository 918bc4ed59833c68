export declare class OwnTime {
  now(): number;
  stop(): void;
}
