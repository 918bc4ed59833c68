/** A promise that a test settles: what waits for it goes on once it is opened. */
export class Gate<T = void> {
  declare open: (value: T) => void;
  declare fail: (error: Error) => void;
  readonly passed = new Promise<T>((resolve, reject) => Object.assign(this, { open: resolve, fail: reject }));
}
