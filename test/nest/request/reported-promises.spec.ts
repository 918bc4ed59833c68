import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { reportPromise } from '../../../lib/nest/request/handler-run.js';

type Handler = (...args: unknown[]) => unknown;

/** What a class has under a name, or one that it inherits from. */
function descriptorOf(prototype: object, name = 'run'): PropertyDescriptor | undefined {
  return Object.getOwnPropertyDescriptor(prototype, name);
}

const handlerOf = (prototype: object, name = 'run') => Reflect.get(prototype, name) as Handler;

/** A controller anew for each test, since its handler is replaced for good. */
function made() {
  class Base {
    readonly sign = '!';

    run(one: string, two: string) {
      return `${one} ${two}${this.sign}`;
    }
  }
  class Derived extends Base {}
  return { Base, Derived, original: handlerOf(Base.prototype) };
}

describe('a handler that reports its promise', () => {
  it('is another function, which does the same', () => {
    const { Base, original } = made();
    reportPromise(Base.prototype, 'run');
    expect(handlerOf(Base.prototype)).not.toBe(original);
    expect(new Base().run('well', 'done')).toBe('well done!');
  });

  it('throws what it threw', () => {
    class Failing {
      run() {
        throw new TypeError('failed');
      }
    }
    reportPromise(Failing.prototype, 'run');
    expect(() => new Failing().run()).toThrow(new TypeError('failed'));
  });

  it('has the name, the length and the place that it had', () => {
    const { Base, original } = made();
    const before = descriptorOf(Base.prototype);
    reportPromise(Base.prototype, 'run');
    const after = descriptorOf(Base.prototype);
    expect(after).toEqual({ ...before, value: expect.any(Function) });
    expect(after?.value).not.toBe(original);
    const { name, length } = handlerOf(Base.prototype);
    expect({ name, length }).toEqual({ name: 'run', length: 2 });
  });

  it('keeps all metadata as its own, and what else is set on it', () => {
    const { Base, original } = made();
    const key = Symbol('key');
    Reflect.defineMetadata('path', '/run', original);
    Reflect.defineMetadata(key, [1], original);
    Object.assign(original, { mark: 7 });
    reportPromise(Base.prototype, 'run');
    const wrapper = handlerOf(Base.prototype);
    expect(Reflect.getOwnMetadataKeys(wrapper)).toEqual(['path', key]);
    expect(Reflect.getOwnMetadata('path', wrapper)).toBe('/run');
    expect(Reflect.getOwnMetadata(key, wrapper)).toEqual([1]);
    expect(Reflect.get(wrapper, 'mark')).toBe(7);
  });

  it('keeps metadata apart that is defined later', () => {
    const { Base, original } = made();
    Reflect.defineMetadata('path', '/run', original);
    reportPromise(Base.prototype, 'run');
    Reflect.defineMetadata('path', '/other', handlerOf(Base.prototype));
    expect(Reflect.getOwnMetadata('path', original)).toBe('/run');
  });

  it('is replaced once, however many apps and classes have it', () => {
    const { Base, Derived } = made();
    reportPromise(Base.prototype, 'run');
    const wrapper = handlerOf(Base.prototype);
    reportPromise(Base.prototype, 'run');
    reportPromise(Derived.prototype, 'run');
    expect(handlerOf(Base.prototype)).toBe(wrapper);
    expect(descriptorOf(Derived.prototype)).toBeUndefined();
  });

  it('is replaced where it is inherited from', () => {
    const { Base, Derived, original } = made();
    reportPromise(Derived.prototype, 'run');
    expect(descriptorOf(Derived.prototype)).toBeUndefined();
    expect(handlerOf(Base.prototype)).not.toBe(original);
    expect(new Derived().run('well', 'done')).toBe('well done!');
  });

  it('is replaced in the class that overrides it, and in no other', () => {
    const { Base, original } = made();
    class Overriding extends Base {
      override run(...words: [string, string]) {
        return super.run(...words).toUpperCase();
      }
    }
    reportPromise(Overriding.prototype, 'run');
    expect(handlerOf(Base.prototype)).toBe(original);
    expect(new Overriding().run('well', 'done')).toBe('WELL DONE!');
  });
});

describe('what is left alone, since it can be no handler or not be replaced,', () => {
  it('is a name that nothing has', () => {
    const bare = Object.create(null) as object;
    for (const prototype of [class {}.prototype, bare]) {
      reportPromise(prototype, 'run');
      expect('run' in prototype).toBe(false);
    }
  });

  it('is a property that is no function', () => {
    const prototype = { run: 'text', none: undefined };
    for (const name of ['run', 'none']) reportPromise(prototype, name);
    expect(prototype).toEqual({ run: 'text', none: undefined });
  });

  it('is an accessor, which is not even read', () => {
    let reads = 0;
    class Reading {
      get run() {
        return reads++;
      }
    }
    const before = descriptorOf(Reading.prototype);
    reportPromise(Reading.prototype, 'run');
    expect(descriptorOf(Reading.prototype)).toEqual(before);
    expect(reads).toBe(0);
  });

  it('is a method of a frozen class', () => {
    const { Base, original } = made();
    Object.freeze(Base.prototype);
    reportPromise(Base.prototype, 'run');
    expect(handlerOf(Base.prototype)).toBe(original);
  });

  it('is a method that may be written to, but not configured', () => {
    const { Base, original } = made();
    Object.defineProperty(Base.prototype, 'run', { configurable: false, writable: true });
    reportPromise(Base.prototype, 'run');
    expect(handlerOf(Base.prototype)).toBe(original);
  });
});
