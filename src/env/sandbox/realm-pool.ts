/** @module Realms, made and taken back, and the isolates that hold them: alone or many with one entry. Synchronous; one thread. */
import type ivm from 'isolated-vm';
import type { ResetLevel } from '../environment.ts';
import { guarded } from './guard.ts';
import { isolatedVm } from './isolated-vm.ts';
import { enter, leave } from './progress.ts';
import { type Cell, type OperationTogether, outcomeOf, Realm, type WorldOutcome } from './realm.ts';
import { type Asked, numberOf, type Switchboard } from './switchboard.ts';

/** One operation of one realm, to be run with others. */
export interface RealmOperation {
  readonly realm: Realm;
  readonly operation: OperationTogether;
  readonly a: string;
  readonly b: string;
  readonly timeoutMs: number;
}

/** Below it isolated-vm refuses to make an isolate. */
export const MIN_MEMORY_MIB = 8;

/** Far above what letting go of a world takes. */
const FORGET_TIMEOUT_MS = 1000;

/** Contexts of 0.2 MiB share an isolate, so that each has this much of its heap at least. */
const MIB_PER_REALM = 2;

/**
 * Makes realms and takes them back. Level `isolate`: each in an isolate of its own. `context`: fresh contexts that share
 * isolates. `state`: contexts too, taken back to be used again.
 */
export class RealmPool {
  readonly #script: string;
  readonly #level: ResetLevel;
  readonly #memoryMiB: number;
  readonly #capacity: number;
  readonly #runsCode: boolean;
  readonly #tidy: boolean;
  readonly #cells = new Set<Cell>();
  #compiled: ivm.ExternalCopy<ArrayBuffer> | undefined;
  #idle: Realm[] = [];

  /**
   * @param o.script what `bundle` made of a world or a verifier; none where a policy's code runs alone
   * @param o.runsCode whether the program may run a policy's code, see `Realm.runCode`
   * @param o.tidy an isolate takes no more contexts once half of its heap is in use, so that what one left behind shortens no other's
   */
  constructor(o: {
    readonly script?: string;
    readonly reset: ResetLevel;
    readonly memoryMiB: number;
    readonly runsCode?: boolean;
    readonly tidy?: boolean;
  }) {
    isolatedVm();
    this.#runsCode = o.runsCode ?? false;
    this.#tidy = o.tidy ?? false;
    this.#script = guarded(o.script);
    this.#level = o.reset;
    this.#memoryMiB = o.memoryMiB;
    this.#capacity = o.reset === 'isolate' ? 1 : Math.max(1, Math.floor(o.memoryMiB / MIB_PER_REALM));
  }

  /** @throws isolated-vm's error where the isolate or the context cannot be made. */
  take(): Realm {
    for (let realm = this.#idle.pop(); realm !== undefined; realm = this.#idle.pop()) {
      if (!realm.cell.retired && !realm.dead) return realm;
      this.#drop(realm);
    }
    const cell = this.#cellWithRoom();
    cell.realms++;
    try {
      return new Realm(cell, this.#runsCode);
    } catch (error) {
      cell.realms--;
      cell.retired = true;
      this.#disposeIfDone(cell);
      throw error;
    }
  }

  /** `reusable: false` where the realm failed in a way that the guard survived but its state may not have. */
  give(realm: Realm, reusable: boolean): void {
    if (reusable && this.#level === 'state' && !realm.cell.retired) this.#idle.push(realm);
    else this.#drop(realm);
  }

  /**
   * Runs one operation of each realm, with one entry for all that share an isolate, within the shortest of their timeouts.
   * Undefined where an outcome is not known: an entry took that long or ended the isolate, and nobody knows whose doing it was; or
   * memory ran short, or time, in an isolate that holds other realms too. What such a realm held is lost: to be run again from
   * the beginning, alone.
   */
  runAll(operations: readonly RealmOperation[]): readonly (WorldOutcome | undefined)[] {
    const outcomes = new Array<WorldOutcome | undefined>(operations.length);
    const places = new Map<Cell, number[]>();
    for (const [i, { realm }] of operations.entries()) {
      const those = places.get(realm.cell);
      if (those === undefined) places.set(realm.cell, [i]);
      else those.push(i);
    }
    for (const [cell, those] of places) {
      const [only, ...more] = those as [number, ...number[]];
      if (more.length > 0) runTogether(cell, operations, those, outcomes);
      else {
        const { realm, operation, a, b, timeoutMs } = operations[only] as RealmOperation;
        outcomes[only] = realm.run(operation, a, b, timeoutMs);
      }
      if (cell.realms === 1) continue;
      for (const place of those) {
        if (isOwn(outcomes[place])) continue;
        outcomes[place] = undefined;
        (operations[place] as RealmOperation).realm.lose();
      }
    }
    return outcomes;
  }

  /** Has the realms that wait for their next world let go of the last. */
  forget(): void {
    this.runAll(this.#idle.map((realm) => ({ realm, operation: 'close', a: '', b: '', timeoutMs: FORGET_TIMEOUT_MS })));
  }

  /** Ends every isolate, also those with realms that are still out. */
  dispose(): void {
    for (const cell of this.#cells) if (!cell.isolate.isDisposed) cell.isolate.dispose();
    this.#cells.clear();
    this.#idle = [];
  }

  #cellWithRoom(): Cell {
    for (const cell of this.#cells) if (!cell.retired && cell.realms < this.#capacity) return cell;
    const isolate = new (isolatedVm().Isolate)({ memoryLimit: this.#memoryMiB });
    const cell: Cell = { isolate, script: this.#compile(isolate), switchboard: undefined, realms: 0, retired: false };
    this.#cells.add(cell);
    return cell;
  }

  /** Parsed once: later isolates take over what the first compiled. It never leaves this object, and no foreign code has run by then. */
  #compile(isolate: ivm.Isolate): ivm.Script {
    const cachedData = this.#compiled;
    const script: ivm.Script & ivm.CachedDataResult = isolate.compileScriptSync(this.#script, {
      filename: 'isogym',
      ...(cachedData === undefined ? { produceCachedData: true } : { cachedData }),
    });
    this.#compiled ??= script.cachedData;
    return script;
  }

  #drop(realm: Realm): void {
    realm.cell.realms--;
    realm.release();
    if (this.#tidy && !realm.cell.retired) realm.cell.retired = this.#isHalfFull(realm.cell);
    if (this.#level === 'isolate') realm.cell.retired = true;
    this.#disposeIfDone(realm.cell);
  }

  #isHalfFull({ isolate }: Cell): boolean {
    if (isolate.isDisposed) return true;
    const { used_heap_size, externally_allocated_size } = isolate.getHeapStatisticsSync();
    return used_heap_size + externally_allocated_size > this.#memoryMiB * 2 ** 19;
  }

  #disposeIfDone(cell: Cell): void {
    if (!cell.retired || cell.realms > 0) return;
    if (!cell.isolate.isDisposed) cell.isolate.dispose();
    this.#cells.delete(cell);
  }
}

/** Whether it is what it would have been with nobody else in the isolate. */
function isOwn(outcome: WorldOutcome | undefined): boolean {
  switch (outcome?.status) {
    case 'ok':
      return true;
    case 'error':
      return outcome.shortOfMemory !== true;
    default:
      return false;
  }
}

/** Sets the outcomes of those operations that a cell's realms are to run, where they are known. */
function runTogether(
  cell: Cell,
  operations: readonly RealmOperation[],
  places: readonly number[],
  outcomes: (WorldOutcome | undefined)[],
): void {
  const asked: Asked = [];
  let least = Number.POSITIVE_INFINITY;
  let outer: number | undefined;
  try {
    for (const place of places) {
      const { realm, operation, a, b, timeoutMs } = operations[place] as RealmOperation;
      least = Math.min(least, timeoutMs);
      asked.push(realm.line(), numberOf(operation), a, b);
    }
    outer = enter(least);
    const answers = (cell.switchboard as Switchboard).run(asked, least);
    for (const [i, place] of places.entries()) {
      const answer = answers[i] ?? '';
      if (answer !== '') outcomes[place] = outcomeOf(answer);
    }
  } catch {
    // isolated-vm's own error: late or dead, and nobody knows whose doing it was.
    cell.retired = true;
  } finally {
    if (outer !== undefined) leave(outer);
  }
}
