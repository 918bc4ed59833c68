export default class NodeEnvironment {
  constructor(config: object, context: object);
  readonly fakeTimersModern: { useFakeTimers(): void; useRealTimers(): void };
  readonly moduleMocker: { spyOn(object: object, method: string): unknown };
  teardown(): Promise<void>;
}
