import { setImmediate } from 'node:timers/promises';

/** The characters to read at a time: about a millisecond. */
const CHARACTERS = 100_000;

/** Lets requests of the app have their turn while much is read. */
export class Turns {
  private read = 0;

  /** Waits for other work of the process if much has been read since the last time. */
  async after(characters: number): Promise<void> {
    this.read += characters;
    if (this.read < CHARACTERS) return;
    this.read = 0;
    await setImmediate();
  }
}
