/** @module Scoring: runs a verifier's code in an isolate of its own. What it cannot score is unscored, never 0. */
import { bundle } from '../env/sandbox/bundle.ts';
import { CodeSandbox } from '../env/sandbox/code.ts';
import { type Realm, RealmPool } from '../env/sandbox/realm.ts';
import { messageOf } from '../records/errors.ts';
import { stopRule } from '../records/stop-reason.ts';
import type { Score } from '../records/trajectory.ts';
import { type ShownInput, shownInput, type Verifier, type VerifierInput } from './verifier.ts';

/** What scores batches: this thread or a pool of workers. */
export interface VerifierEngine {
  /** One score an input, in the order of the inputs. */
  score(inputs: readonly VerifierInput[]): Promise<readonly Score[]>;
  close(): Promise<void>;
}

/** The parts of a verifier that score: plain data, so that it crosses to a worker. */
export type Judge = Pick<Verifier, 'range' | 'success' | 'timeoutMs' | 'memoryMiB' | 'reset' | 'code' | 'reads'>;

/** A score that is no score, with its reason. */
export function unscored(reason: string): Score {
  return { score: null, success: false, reasons: [reason] };
}

/** Scores on the calling thread. */
export class VerifierRunner implements VerifierEngine {
  readonly #judge: Judge;
  readonly #realms: RealmPool;
  readonly #code: CodeSandbox | undefined;

  /** @param script what `bundle` made of the module behind `Verifier.source` */
  constructor(judge: Judge, script: string) {
    this.#judge = judge;
    const { reset, memoryMiB, code } = judge;
    this.#realms = new RealmPool({ script, reset, memoryMiB, runsCode: code !== undefined });
    this.#code = code === undefined ? undefined : new CodeSandbox(code);
  }

  /** @throws MODULE_NOT_FOUND | BUNDLE_FAILED | ISOLATED_VM_UNSAFE | ISOLATED_VM_MISSING */
  static async create(verifier: Verifier): Promise<VerifierRunner> {
    return new VerifierRunner(verifier, await bundle(verifier.source));
  }

  /** Never throws: a verifier that throws, is late, dies or gives no finite number in its range leaves the episode unscored. */
  score(input: ShownInput): Score;
  score(inputs: readonly ShownInput[]): Promise<readonly Score[]>;
  score(what: ShownInput | readonly ShownInput[]): Score | Promise<readonly Score[]> {
    return isBatch(what) ? Promise.resolve(what.map((input) => this.#one(input))) : this.#one(what);
  }

  dispose(): void {
    this.#realms.dispose();
    this.#code?.dispose();
  }

  async close(): Promise<void> {
    this.dispose();
  }

  #one(input: ShownInput): Score {
    const rule = stopRule(input.stop);
    if (!rule.scored) return unscored(`not scored: ${rule.meaning}`);
    let json: string;
    let realm: Realm;
    try {
      json = JSON.stringify(shownInput(input, this.#judge.reads));
      realm = this.#realms.take();
    } catch (error) {
      return unscored(`the verifier cannot be run: ${messageOf(error)}`);
    }
    realm.runCode = this.#code?.session();
    const outcome = realm.run('score', json, input.taskId, this.#judge.timeoutMs);
    this.#realms.give(realm, true);
    switch (outcome.status) {
      case 'ok':
        return verdict(JSON.parse(outcome.text) as Verdict, this.#judge, rule.ends === 'terminated');
      case 'error':
        return unscored(`the verifier threw: ${outcome.message}`);
      case 'timeout':
        return unscored(`the verifier took longer than ${this.#judge.timeoutMs} ms`);
      case 'crashed':
        return unscored(`the verifier's isolate died: ${outcome.message}`);
    }
  }
}

/** What the guard's `score` operation answers: the score as text, since JSON has no NaN. */
interface Verdict {
  readonly number: boolean;
  readonly score: string;
  readonly reasons: readonly string[];
}

function verdict({ number, score, reasons }: Verdict, judge: Judge, terminated: boolean): Score {
  if (!number) return unscored(`expected a number as the score, found ${score}`);
  const value = Number(score);
  const [low, high] = judge.range;
  // Written so that NaN fails it too.
  if (!(value >= low && value <= high && Number.isFinite(value))) {
    return {
      score: null,
      success: false,
      reasons: [`expected a score in [${low}, ${high}], found ${score}`, ...reasons],
    };
  }
  return { score: value, success: terminated && value >= judge.success, reasons };
}

function isBatch(what: ShownInput | readonly ShownInput[]): what is readonly ShownInput[] {
  return Array.isArray(what);
}
