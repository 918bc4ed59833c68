import { show } from '../../engine/errors/wording.js';
import { type Located, type LocatedEntry, type Place, within } from './located.js';

/** A value returned by a function. Each property is read once. */
export class PlainValue implements Located {
  readonly place: Place;

  constructor(
    readonly value: unknown,
    name: string,
    path = '',
  ) {
    this.place = { name, path };
  }

  get shown(): string {
    return show(this.value);
  }

  get entries(): readonly LocatedEntry[] | undefined {
    if (!isPlainObject(this.value)) return undefined;
    return Object.entries(this.value)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => {
        const located = this.at(name, value);
        return { name, place: located.place, value: located };
      });
  }

  get items(): readonly Located[] | undefined {
    return Array.isArray(this.value)
      ? Array.from(this.value as unknown[], (each, index) => this.at(index, each))
      : undefined;
  }

  private at(step: string | number, value: unknown): PlainValue {
    return new PlainValue(value, this.place.name, within(this.place.path, step));
  }
}

/** Returns true for plain objects. The properties of a list, a `Map`, a date and the like have no meaning in a policy. */
function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.prototype.toString.call(value) === '[object Object]';
}
