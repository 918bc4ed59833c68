/** A program that runs JavaScript. */
export interface Runtime {
  readonly command: string;
  /** What it is given before the file to run. */
  readonly args?: readonly string[];
  /** What is added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Whether it compiles TypeScript with decorators. */
  readonly compiles?: boolean;
}

export interface CheckOutcome {
  readonly name: string;
  /** Why it failed. */
  readonly error?: string;
}

export declare function runChecks(
  runtime: Runtime,
  program: string,
  packageFolder: string,
  redisUrl: string,
): Promise<CheckOutcome[]>;
