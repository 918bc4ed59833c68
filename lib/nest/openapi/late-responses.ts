export type Responses = Record<string, object>;

/** Where `@nestjs/swagger` keeps the responses of a controller or a route. Using the key avoids loading the package. */
const RESPONSES = 'swagger/apiResponse';

/** The documented responses of a class, its superclasses or a method. */
export function responsesOf(target: object): Responses | undefined {
  return Reflect.getMetadata(RESPONSES, target) as Responses | undefined;
}

export function documentResponses(target: object, responses: Responses): void {
  Reflect.defineMetadata(RESPONSES, responses, target);
}

/** What was documented of a class itself, by the responses that stand in for it. */
const standIns = new WeakMap<object, Responses | undefined>();

function ownResponses(type: object): Responses | undefined {
  return Reflect.getOwnMetadata(RESPONSES, type) as Responses | undefined;
}

/**
 * Stands in for the documented responses of some classes, and has them written when a document is made, which reads those of a
 * class before those of its methods. Most processes never make one.
 */
export class LateResponses {
  private readonly byClass = new Map<object, Responses>();

  constructor(private readonly write: () => void) {}

  /** Stands in for the responses of a class; again, if those of another app do. */
  standIn(type: object): void {
    const own = ownResponses(type);
    const written = own !== undefined && standIns.has(own) ? standIns.get(own) : own;
    const onceWritten = <Given extends unknown[], Result>(read: (...given: Given) => Result) => {
      return (...given: Given): Result => {
        if (this.byClass.get(type) === late) this.writeAll();
        return read(...given);
      };
    };
    const late: Responses = new Proxy<Responses>(
      {},
      {
        ownKeys: onceWritten(Reflect.ownKeys),
        get: onceWritten((responses: Responses, name) => Reflect.get(responses, name) as unknown),
        has: onceWritten(Reflect.has),
        getOwnPropertyDescriptor: onceWritten(Reflect.getOwnPropertyDescriptor),
      },
    );
    standIns.set(late, written);
    this.byClass.set(type, late);
    documentResponses(type, late);
  }

  /** Puts back what was documented before. */
  withdraw(): void {
    for (const [type, late] of this.byClass) {
      if (ownResponses(type) !== late) continue;
      const written = standIns.get(late);
      if (written === undefined) Reflect.deleteMetadata(RESPONSES, type);
      else documentResponses(type, written);
    }
    this.byClass.clear();
  }

  private writeAll(): void {
    const all = [...this.byClass];
    this.withdraw();
    this.write();
    // Who reads them now has got the stand-in.
    for (const [type, late] of all) Object.assign(late, responsesOf(type));
  }
}
