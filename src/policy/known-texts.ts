/** @module What short texts came to, so that it is worked out once: prompts, actions and observations come again and again. */

/** Of how many texts it is kept, and how long [UTF-16 code units] they may be. */
const MAX_TEXTS = 4096;
const MAX_LENGTH = 64;

/** A copy: a text that was cut out of another keeps all of that one. */
export function ownText(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
}

/** A function of texts that remembers: to be asked for what follows from the text alone, and cannot be changed, for all who ask share it. */
export class KnownTexts<T extends object | string> {
  readonly #made = new Map<string, T>();
  readonly #make: (text: string) => T;
  readonly #keep: (made: T) => T;

  /** @param keep readies what is to be remembered for all who ask */
  constructor(make: (text: string) => T, keep: (made: T) => T = (made) => made) {
    this.#make = make;
    this.#keep = keep;
  }

  of(text: string): T {
    if (text.length > MAX_LENGTH) return this.#make(text);
    const known = this.#made.get(text);
    if (known !== undefined) return known;
    const own = ownText(text);
    const made = this.#keep(this.#make(own));
    if (this.#made.size === MAX_TEXTS) this.#made.clear();
    this.#made.set(own, made);
    return made;
  }
}
