/**
 * @module One entry into an isolate for operations of many of its realms: an entry costs more than what most of them do. It is a
 * context of its own in which no foreign code ever runs; it knows the realms' doors (see `guard.ts`), and strings alone pass.
 */
import type ivm from 'isolated-vm';
import { pieces } from './pieces.ts';
import type { Door, OperationTogether } from './realm.ts';

/** What may be done for many at once, by its place here. */
const OPERATIONS: readonly OperationTogether[] = ['open', 'call', 'close'];

const SCRIPT = `'use strict';
(() => {
  const { parse, stringify } = JSON;
  const operations = ${JSON.stringify(OPERATIONS)};
  const doors = [];
  globalThis.connect = (line, door) => {
    doors[line] = door;
  };
  // Four places for each operation: line, operation, and its two texts. A door catches what foreign code throws; what gets past it
  // (the stack ran out there) leaves an empty answer and is not looked at.
  globalThis.run = (...pieces) => {
    let json = '';
    for (let i = 0; i < pieces.length; i++) json += pieces[i];
    const asked = parse(json);
    const answers = [];
    for (let i = 0; i < asked.length; i += 4) {
      let answer = '';
      try {
        answer = doors[asked[i]](operations[asked[i + 1]], asked[i + 2], asked[i + 3], 0);
      } catch {}
      answers[i / 4] = answer;
    }
    return stringify(answers);
  };
})();
0`;

/** Line of a realm, number of an operation, and its two texts: see `Switchboard.run`. */
export type Asked = (number | string)[];

/** The number of an operation on a switchboard. */
export function numberOf(operation: OperationTogether): number {
  return OPERATIONS.indexOf(operation);
}

export class Switchboard {
  readonly #connect: ivm.Reference<(line: number, door: Door | undefined) => void>;
  readonly #run: ivm.Reference<(...pieces: string[]) => string>;
  /** Lines that were given back. */
  readonly #free: number[] = [];
  #lines = 0;

  constructor(isolate: ivm.Isolate) {
    const context = isolate.createContextSync();
    isolate.compileScriptSync(SCRIPT, { filename: 'isogym:switchboard' }).runSync(context);
    this.#connect = context.global.getSync('connect', { reference: true });
    this.#run = context.global.getSync('run', { reference: true });
  }

  /** @param door of a context of the same isolate. Gives its line. */
  connect(door: ivm.Reference<Door>): number {
    const line = this.#free.pop() ?? this.#lines++;
    this.#connect.applySync(undefined, [line, door.derefInto() as unknown as Door]);
    return line;
  }

  disconnect(line: number): void {
    this.#connect.applySync(undefined, [line, undefined]);
    this.#free.push(line);
  }

  /**
   * The doors' answers, in order; empty where a door gave none.
   * @param asked four places for each operation: line, number, and its two texts
   * @param timeoutMs of all together
   * @throws isolated-vm's error
   */
  run(asked: Asked, timeoutMs: number): readonly string[] {
    return JSON.parse(
      this.#run.applySync(undefined, pieces(JSON.stringify(asked)), { timeout: timeoutMs }),
    ) as string[];
  }
}
