/** @module Scoring: runs a verifier's code in an isolate of its own. What it cannot score is unscored, never 0. */
import { bundle } from '../env/sandbox/bundle.ts';
import { CodeSandbox } from '../env/sandbox/code.ts';
import type { Realm } from '../env/sandbox/realm.ts';
import { RealmPool } from '../env/sandbox/realm-pool.ts';
import { messageOf } from '../records/errors.ts';
import { type StopReason, stopRule } from '../records/stop-reason.ts';
import type { Score } from '../records/trajectory.ts';
import type { Verifier, VerifierInput } from './verifier.ts';
import { unscored, type WrittenInputs, written } from './written.ts';

/** What scores batches: this thread or a pool of workers. */
export interface VerifierEngine {
  /** One score an input, in the order of the inputs. */
  score(inputs: readonly VerifierInput[]): Promise<readonly Score[]>;
  close(): Promise<void>;
}

/** The parts of a verifier that score: plain data, so that it crosses to a worker. */
export type Judge = Pick<Verifier, 'range' | 'success' | 'timeoutMs' | 'memoryMiB' | 'reset' | 'code' | 'reads'>;

/**
 * Inputs scored with one entry, at most. Their answers come out as one text, and isolated-vm makes of one from 1 KiB on a string whose
 * bytes lie outside the heap and which is old from its birth: with 128 the thread kept 80 bytes of each episode for millions of them.
 */
const TOGETHER = 12;

/** Scores on the calling thread. */
export class VerifierRunner implements VerifierEngine {
  readonly #judge: Judge;
  readonly #realms: RealmPool;
  readonly #code: CodeSandbox | undefined;
  /** One where each input has a realm, or runs of code, of its own. */
  readonly #most: number;
  /** How many inputs one entry is given now. */
  #together: number;

  /** @param script what `bundle` made of the module behind `Verifier.source` */
  constructor(judge: Judge, script: string) {
    this.#judge = judge;
    const { reset, memoryMiB, code } = judge;
    this.#realms = new RealmPool({ script, reset, memoryMiB, runsCode: code !== undefined });
    this.#code = code === undefined ? undefined : new CodeSandbox(code);
    this.#most = reset === 'state' && code === undefined ? TOGETHER : 1;
    this.#together = this.#most;
  }

  /** @throws MODULE_NOT_FOUND | BUNDLE_FAILED | ISOLATED_VM_UNSAFE | ISOLATED_VM_MISSING */
  static async create(verifier: Verifier): Promise<VerifierRunner> {
    return new VerifierRunner(verifier, await bundle(verifier.source));
  }

  /** Never throws: a verifier that throws, is late, dies or gives no finite number in its range leaves the episode unscored. */
  score(input: VerifierInput): Score;
  score(inputs: readonly VerifierInput[]): Promise<readonly Score[]>;
  score(what: VerifierInput | readonly VerifierInput[]): Score | Promise<readonly Score[]> {
    const inputs = written(isBatch(what) ? what : [what], this.#judge.reads);
    const scores = inputs.scores(this.scoreWritten(inputs));
    return isBatch(what) ? Promise.resolve(scores) : (scores[0] as Score);
  }

  /**
   * The same of what is written already. One entry is for many inputs, with the time of one: where they do not get through it, each is
   * run alone, so that it comes to what it would have come to, and the next entries are given fewer.
   */
  scoreWritten({ stops, texts }: WrittenInputs): readonly Score[] {
    const scores: Score[] = [];
    while (scores.length < texts.length) {
      const from = scores.length;
      const to = Math.min(from + this.#together, texts.length);
      const found = this.#enter(stops.slice(from, to), texts.slice(from, to));
      if (typeof found !== 'string') {
        scores.push(...found);
        this.#together = Math.min(this.#together + 1, this.#most);
      } else if (to === from + 1) {
        scores.push(unscored(found));
      } else {
        for (let i = from; i < to; i++) {
          const alone = this.#enter(stops.slice(i, i + 1), texts.slice(i, i + 1));
          scores.push(...(typeof alone === 'string' ? [unscored(alone)] : alone));
        }
        this.#together = Math.ceil((to - from) / 2);
      }
    }
    return scores;
  }

  dispose(): void {
    this.#realms.dispose();
    this.#code?.dispose();
  }

  async close(): Promise<void> {
    this.dispose();
  }

  /** A score each, or why there is none of any. */
  #enter(stops: readonly StopReason[], texts: readonly string[]): readonly Score[] | string {
    let realm: Realm;
    try {
      realm = this.#realms.take();
    } catch (error) {
      return `the verifier cannot be run: ${messageOf(error)}`;
    }
    realm.runCode = this.#code?.session();
    const outcome = realm.run('score', `[${texts.join(',')}]`, '', this.#judge.timeoutMs);
    let scores: readonly Score[] | undefined;
    try {
      if (outcome.status === 'ok') scores = scoresOf(outcome.text, stops, this.#judge);
    } catch {
      // It writes JSON otherwise than we do: `toJSON`.
    }
    this.#realms.give(realm, outcome.status !== 'ok' || scores !== undefined);
    switch (outcome.status) {
      case 'ok':
        return scores ?? "the verifier's answer cannot be read";
      case 'error':
        return `the verifier threw: ${outcome.message}`;
      case 'timeout':
        return `the verifier took longer than ${this.#judge.timeoutMs} ms`;
      case 'crashed':
        return `the verifier's isolate died: ${outcome.message}`;
    }
  }
}

/** What the guard's `score` operation answers for an input: the score as text, since JSON has no NaN; or what was thrown, a letter before it. */
type Answer = string | { readonly number: boolean; readonly score: string; readonly reasons: readonly string[] };

/** @throws where it is no list of answers */
function scoresOf(text: string, stops: readonly StopReason[], judge: Judge): readonly Score[] {
  const answers = JSON.parse(text) as readonly Answer[];
  return stops.map((stop, i) => scoreOf(answers[i] as Answer, stop, judge));
}

function scoreOf(answer: Answer, stop: StopReason, { range: [low, high], success }: Judge): Score {
  if (typeof answer === 'string') return unscored(`the verifier threw: ${answer.slice(1)}`);
  const { number, score, reasons } = answer;
  if (!number) return unscored(`expected a number as the score, found ${score}`);
  const value = Number(score);
  // Written so that NaN fails it too.
  if (!(value >= low && value <= high && Number.isFinite(value))) {
    return {
      score: null,
      success: false,
      reasons: [`expected a score in [${low}, ${high}], found ${score}`, ...reasons],
    };
  }
  return { score: value, success: stopRule(stop).ends === 'terminated' && value >= success, reasons };
}

function isBatch(what: VerifierInput | readonly VerifierInput[]): what is readonly VerifierInput[] {
  return Array.isArray(what);
}
