/** @module A world host: opens an environment's worlds inside isolates. It knows no tasks, tools or episodes, only strings. */
import { IsogymError, messageOf } from '../../records/errors.ts';
import type { SandboxFailure } from '../../records/trajectory.ts';
import type { ResetLevel } from '../environment.ts';
import { type CodeLimits, CodeSandbox } from './code.ts';
import { type ForkableWorld, OpenedWorld } from './opened-world.ts';
import type { Realm, WorldOutcome } from './realm.ts';
import { type RealmOperation, RealmPool } from './realm-pool.ts';

export type { ForkableWorld, WorldSession } from './opened-world.ts';
export type { WorldOutcome } from './realm.ts';

/** A world that could not be opened: the author's code threw, looped, or gave no world; or the isolate died. */
export class WorldFailure extends IsogymError {
  /** What the sandbox failed of; undefined where the environment failed. */
  readonly failure: SandboxFailure | undefined;

  constructor(failure: SandboxFailure | undefined, message: string, cause?: unknown) {
    super(failure === undefined ? 'ENVIRONMENT_FAILURE' : 'SANDBOX_FAILURE', message, { cause });
    this.failure = failure;
  }
}

/** A safety net far above the normal (a world opens in microseconds), not a rule of any environment. */
const OPEN_TIMEOUT_MS = 5000;

/** Several sessions may be open at once. An isolate that died or ran late takes no new session; the next one begins in another. */
export class WorldHost {
  readonly #realms: RealmPool;
  readonly #openTimeoutMs: number;
  readonly #code: CodeSandbox | undefined;

  /**
   * @param o.script what `bundle` made of the module behind `Environment.world`
   * @param o.memoryMiB heap limit of one isolate, at least 8; on the levels `state` and `context` sessions share it, 2 MiB each
   * @param o.code bounds of the code of a policy that worlds run; without them they may run none
   * @throws ISOLATED_VM_UNSAFE | ISOLATED_VM_MISSING
   */
  constructor(o: {
    readonly script: string;
    readonly reset: ResetLevel;
    readonly memoryMiB: number;
    readonly openTimeoutMs?: number;
    readonly code?: CodeLimits;
  }) {
    this.#realms = new RealmPool({ ...o, runsCode: o.code !== undefined });
    this.#code = o.code === undefined ? undefined : new CodeSandbox(o.code);
    this.#openTimeoutMs = o.openTimeoutMs ?? OPEN_TIMEOUT_MS;
  }

  /** Calls the author's `create` with the task's public part; `seed` fixes `random`, `Math.random` and the clock. @throws WorldFailure */
  open(publicJson: string, seed: string): ForkableWorld {
    return this.#open(publicJson, seed);
  }

  dispose(): void {
    this.#realms.dispose();
    this.#code?.dispose();
  }

  /** A world that is run together with others by `runAll`: nothing of it has been run yet. @throws WorldFailure */
  take(): Realm {
    try {
      return this.#realms.take();
    } catch (cause) {
      throw new WorldFailure('died', `No context can be made for the world: ${messageOf(cause)}`, cause);
    }
  }

  /** The operation that opens a world in a realm that was taken. */
  opening(realm: Realm, publicJson: string, seed: string): RealmOperation {
    return { realm, operation: 'open', a: publicJson, b: seed, timeoutMs: this.#openTimeoutMs };
  }

  /** See `RealmPool.runAll`. */
  runAll(operations: readonly RealmOperation[]): readonly (WorldOutcome | undefined)[] {
    return this.#realms.runAll(operations);
  }

  /** @param usable whether a next world may be opened in it */
  give(realm: Realm, usable = true): void {
    this.#realms.give(realm, usable && !realm.dead);
  }

  /** See `RealmPool.forget`. */
  forget(): void {
    this.#realms.forget();
  }

  /** Why a world was not opened. */
  failureOf(outcome: Exclude<WorldOutcome, { readonly status: 'ok' }>): WorldFailure {
    switch (outcome.status) {
      case 'error':
        return new WorldFailure(undefined, `The world's create() threw: ${outcome.message}`);
      case 'timeout':
        return new WorldFailure(undefined, `The world's create() took longer than ${this.#openTimeoutMs} ms.`);
      case 'crashed':
        return new WorldFailure(outcome.kind, `The isolate died while the world was created: ${outcome.message}`);
    }
  }

  #open(publicJson: string, seed: string): OpenedWorld {
    const realm = this.take();
    realm.runCode = this.#code?.session();
    const outcome = realm.run('open', publicJson, seed, this.#openTimeoutMs);
    if (outcome.status === 'ok') {
      return new OpenedWorld(realm, {
        publicJson,
        seed,
        timeoutMs: this.#openTimeoutMs,
        snapshots: this.#code === undefined,
        again: () => this.#open(publicJson, seed),
        release: (used) => this.give(used),
      });
    }
    this.give(realm, false);
    throw this.failureOf(outcome);
  }
}
