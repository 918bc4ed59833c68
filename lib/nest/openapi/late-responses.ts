export type Responses = Record<string, object>;

/** The key under which `@nestjs/swagger` stores the responses of a controller or a route. Using the key avoids loading the package. */
const RESPONSES = 'swagger/apiResponse';

/** The documented responses of a class, its superclasses or a method. */
export function responsesOf(target: object): Responses | undefined {
  return Reflect.getMetadata(RESPONSES, target) as Responses | undefined;
}

export function documentResponses(target: object, responses: Responses): void {
  Reflect.defineMetadata(RESPONSES, responses, target);
}

interface StandIn {
  /** The responses that were documented for the class before, possibly by a stand-in of another app. */
  readonly before: Responses | undefined;
  /** True if its app has not written its responses yet. */
  waits: boolean;
}

const standIns = new WeakMap<object, StandIn>();

/** The responses that were documented without stand-ins, or with those of other apps that have not written yet. */
function documentedBefore(responses: Responses | undefined, others: boolean): Responses | undefined {
  const standIn = responses && standIns.get(responses);
  if (standIn === undefined || (others && standIn.waits)) return responses;
  return documentedBefore(standIn.before, others);
}

function ownResponses(type: object): Responses | undefined {
  return Reflect.getOwnMetadata(RESPONSES, type) as Responses | undefined;
}

/**
 * Replaces the documented responses of some classes with stand-ins, which cause the real ones to be written when a document is created: it
 * reads those of a class before those of its methods. Most processes never create one.
 */
export class LateResponses {
  private readonly byClass = new Map<object, Responses>();

  constructor(private readonly write: () => void) {}

  /** Replaces the responses of a class with a stand-in, even if they are already a stand-in of another app. */
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

  /** Restores the responses that were documented before. */
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
    // The code that is reading the responses now has a reference to the stand-in.
    for (const [type, late] of all) Object.assign(late, responsesOf(type));
  }
}
