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

interface StandIn {
  /** What was documented of the class itself, maybe by a stand-in of another app. */
  readonly before: Responses | undefined;
  /** Whether its app would still write. */
  waits: boolean;
}

const standIns = new WeakMap<object, StandIn>();

/** What was documented without stand-ins, or with those of other apps that still wait. */
function documentedBefore(responses: Responses | undefined, others: boolean): Responses | undefined {
  const standIn = responses && standIns.get(responses);
  if (standIn === undefined || (others && standIn.waits)) return responses;
  return documentedBefore(standIn.before, others);
}

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
    // A controller may be in several modules.
    if (this.byClass.has(type)) return;
    const before = ownResponses(type);
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
    standIns.set(late, { before, waits: true });
    this.byClass.set(type, late);
    documentResponses(type, late);
  }

  /** Puts back what was documented before. */
  withdraw(): void {
    this.putBack(true);
  }

  private putBack(others: boolean): void {
    for (const [type, late] of this.byClass) {
      standIns.get(late)!.waits = false;
      if (ownResponses(type) !== late) continue;
      const written = documentedBefore(late, others);
      if (written === undefined) Reflect.deleteMetadata(RESPONSES, type);
      else documentResponses(type, written);
    }
    this.byClass.clear();
  }

  private writeAll(): void {
    const all = [...this.byClass];
    this.putBack(false);
    this.write();
    // Who reads them now has got the stand-in.
    for (const [type, late] of all) Object.assign(late, responsesOf(type));
  }
}
