/** @module One opened world: its calls, the hash of its state, and forks of it in the midst of an episode. */
import { hash } from 'node:crypto';
import { IsogymError } from '../../records/errors.ts';
import { died, type Realm, type WorldOutcome } from './realm.ts';

/** One episode's world. */
export interface WorldSession {
  /**
   * Runs one tool. An unknown tool, a thrown value, a result that is no string or is longer than 2^20 characters is an
   * `error`; after `timeout` the world is not to be trusted and later calls are `crashed`. Never throws.
   */
  call(tool: string, argsJson: string, timeoutMs: number): WorldOutcome;
  /** Idempotent; calls after it are `crashed`. */
  close(): void;
}

/** A world that can be forked: what `WorldHost.open` gives. */
export interface ForkableWorld extends WorldSession {
  /**
   * SHA-256 [64 hexadecimal digits] of its state: of task and seed, and of its snapshot, generator and clock where the world
   * declares `snapshot`, else of its calls and what they came to. Equal hashes mean equal states; without a snapshot two ways
   * to one state have two hashes.
   * @throws FORK_IMPOSSIBLE
   */
  stateHash(): string;
  /**
   * Another world in the same state, generator and clock included; from here on the two know nothing of each other. Where
   * the world declares `snapshot` and `restore` it is made from these, else by running the calls so far again in a fresh
   * world, each held against what it came to. To be closed like any other.
   * @throws FORK_IMPOSSIBLE where a call ran late or crashed, or the world is closed; FORK_DIVERGED where the fork did not
   * come to the same: the world is not the same every time, or its `restore` forgets something; what opening it throws
   */
  fork(): ForkableWorld;
}

interface Past {
  readonly tool: string;
  readonly argsJson: string;
  readonly timeoutMs: number;
  readonly outcome: WorldOutcome;
}

/** What a world needs of its host. */
export interface Origin {
  readonly publicJson: string;
  readonly seed: string;
  /** Bound on `snapshot` and `restore` [ms]. */
  readonly timeoutMs: number;
  /** Whether a snapshot may stand for the calls: what is counted outside the world, as runs of a policy's code are, it does not hold. */
  readonly snapshots: boolean;
  /** The same world, opened anew. */
  again(): OpenedWorld;
  release(realm: Realm): void;
}

export class OpenedWorld implements ForkableWorld {
  readonly #realm: Realm;
  readonly #origin: Origin;
  #past: Past[] = [];
  #closed = false;

  constructor(realm: Realm, origin: Origin) {
    this.#realm = realm;
    this.#origin = origin;
  }

  call(tool: string, argsJson: string, timeoutMs: number): WorldOutcome {
    // Checked here too: at level `state` the realm itself lives on, with another episode in it.
    if (this.#closed) return died('The session is closed.');
    const outcome = this.#realm.run('call', tool, argsJson, timeoutMs);
    this.#past.push({ tool, argsJson, timeoutMs, outcome });
    return outcome;
  }

  stateHash(): string {
    const { publicJson, seed } = this.#origin;
    const snapshot = this.#snapshot();
    // A snapshot holds what changes; what the world was opened with its tools may read too.
    const since = snapshot !== '' ? snapshot : this.#past.map((p) => [p.tool, p.argsJson, p.outcome]);
    return hash('sha256', JSON.stringify([publicJson, seed, since]));
  }

  fork(): OpenedWorld {
    const snapshot = this.#snapshot();
    const fork = this.#origin.again();
    try {
      if (snapshot === '') this.#relive(fork);
      else this.#restore(fork, snapshot);
    } catch (error) {
      fork.close();
      throw error;
    }
    return fork;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#origin.release(this.#realm);
  }

  /** Empty where the world has none that stands for all of it. */
  #snapshot(): string {
    const last = this.#past.at(-1)?.outcome.status;
    if (this.#closed || this.#realm.dead) {
      const why = this.#closed ? 'one that is closed' : `one whose call ended with ${last}`;
      throw new IsogymError('FORK_IMPOSSIBLE', `expected a world whose state is known, found ${why}`, {
        hint: 'Fork it before that call.',
      });
    }
    if (!this.#origin.snapshots) return '';
    const outcome = this.#realm.run('snapshot', '', '', this.#origin.timeoutMs);
    if (outcome.status === 'ok') return outcome.text;
    throw diverged(`a snapshot, found that snapshot() came to ${told(outcome)}`);
  }

  #relive(fork: OpenedWorld): void {
    for (const [i, { tool, argsJson, timeoutMs, outcome }] of this.#past.entries()) {
      const again = fork.call(tool, argsJson, timeoutMs);
      if (JSON.stringify(again) === JSON.stringify(outcome)) continue;
      throw diverged(`call ${i + 1} (${tool} ${argsJson}) to come to ${told(outcome)} again, found ${told(again)}`);
    }
  }

  #restore(fork: OpenedWorld, snapshot: string): void {
    const outcome = fork.#realm.run('restore', snapshot, '', this.#origin.timeoutMs);
    if (outcome.status !== 'ok') throw diverged(`restore() to take the snapshot, found ${told(outcome)}`);
    const again = fork.#snapshot();
    if (again !== snapshot) throw diverged(`the snapshot ${snapshot} after restore(), found ${again}`);
    fork.#past = [...this.#past];
  }
}

function diverged(what: string): IsogymError {
  return new IsogymError('FORK_DIVERGED', `expected ${what}`, {
    hint: 'A world must be a function of its task, its seed and its calls, and a snapshot must hold all that its tools read and change.',
  });
}

function told(outcome: WorldOutcome): string {
  const text = JSON.stringify(outcome);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
