/**
 * @module `isogym/gym/inside`: a class with `reset` and `step`, as Gymnasium has them (Towers et al. 2024), as a world and as the
 * verifier that plays the episode again. It imports nothing, so that it can be bundled for an isolate.
 *
 * Rewards come from the class, and no environment scores itself here. So the world drops them, and the verifier, in an isolate
 * of its own, makes the class anew from the task, takes the recorded actions and adds up the rewards itself; where its
 * observations are not those of the record, the episode has no score. That asks one thing of the class: all its chance
 * comes from the seed that `reset` is given.
 */
import type { Json } from '../../records/json.ts';
import type { Step } from '../../records/trajectory.ts';

/** What `reset` and `step` observe: any JSON value. `info` is for people and never leaves the class. */
export interface GymReset {
  readonly observation: Json;
  readonly info?: unknown;
}
/** `terminated`: the task itself has ended. `truncated`: a bound of the class's own has. No step may follow either. */
export interface GymStep extends GymReset {
  readonly reward: number;
  readonly terminated: boolean;
  readonly truncated: boolean;
}
/** Synchronous; actions are numbers from 0, as in Gymnasium's `Discrete`. */
export interface GymClass {
  reset(seed: number): GymReset;
  step(action: number): GymStep;
}

/** The public part of a task of `gymEnvironment`. */
export interface GymPublic {
  /** What `reset` is given. */
  readonly seed: number;
  /** The environment's options, for the class's constructor. */
  readonly settings: Json;
  /** Names of the actions, in the order of their numbers. */
  readonly actions: readonly string[];
  /** The first observation, as text: the prompt ends with it. */
  readonly first: string;
}

export type MakeGym<Settings = never> = (settings: Settings) => GymClass;

/** The final answer once there is nothing more to do. */
export const DONE = 'done';
/** Longest observation, in UTF-16 code units. */
export const MAX_OBSERVATION = 60_000;

/** A text as it is, all else as JSON. @throws Error where it is no JSON value, or too long */
export function observationText(observation: unknown): string {
  const text = typeof observation === 'string' ? observation : JSON.stringify(observation);
  if (typeof text !== 'string')
    throw new TypeError(`expected a JSON value as the observation, found ${typeof observation}`);
  if (text.length > MAX_OBSERVATION)
    throw new RangeError(`expected at most ${MAX_OBSERVATION} characters as the observation, found ${text.length}`);
  return text;
}

/** One attempt of the class: what both sides do alike. */
class Attempt {
  readonly #class: GymClass;
  readonly #actions: readonly string[];
  over = false;

  constructor(make: MakeGym, { seed, settings, actions }: GymPublic) {
    this.#class = make(settings as never);
    this.#actions = actions;
    this.#class.reset(seed);
  }

  /** What the policy reads, and the reward that it does not. @throws Error once it is over, and on what is no step */
  step(action: string): { readonly text: string; readonly reward: number } {
    if (this.over) throw new Error(`the attempt is over: give the final answer, ${DONE}`);
    const { observation, reward, terminated, truncated } = this.#class.step(this.#actions.indexOf(action));
    if (typeof reward !== 'number' || !Number.isFinite(reward))
      throw new TypeError(`expected a finite reward of step(), found ${reward}`);
    if (typeof terminated !== 'boolean' || typeof truncated !== 'boolean') {
      throw new TypeError('expected terminated and truncated of step(), true or false');
    }
    this.over = terminated || truncated;
    const end = terminated ? ' terminated' : truncated ? ' truncated' : '';
    return { text: observationText(observation) + end, reward };
  }
}

/** The default export of a world module: one tool, `step`. */
export function mountGym<Settings>(make: MakeGym<Settings>) {
  return ({ public: task }: { readonly public: GymPublic }) => {
    const attempt = new Attempt(make as MakeGym, task);
    return { tools: { step: ({ action }: { readonly action: string }): string => attempt.step(action).text } };
  };
}

/**
 * The default export of a verifier's module: the score is the sum of the rewards (undiscounted) of the recorded actions in a
 * fresh attempt. @throws Error, so that there is no score, where an observation differs, or the final answer is none of this environment
 */
export function replayGym<Settings>(make: MakeGym<Settings>) {
  return ({
    public: task,
    steps,
    final,
  }: {
    readonly public: Json;
    readonly steps: readonly Step[];
    readonly final: string | null;
  }) => {
    if (final !== null && final !== DONE) throw new Error(`expected the final answer ${DONE}, found ${final}`);
    const attempt = new Attempt(make as MakeGym, task as unknown as GymPublic);
    let total = 0;
    let taken = 0;
    for (const { index, action, calls } of steps) {
      for (const [i, record] of calls.entries()) {
        // What was refused before it ran, and what came after the end, did nothing.
        if (record.attempts === 0 || attempt.over) continue;
        const { text, reward } = attempt.step(String(action.calls[i]?.arguments?.action));
        if (text !== record.observation) {
          throw new Error(
            `step ${index + 1}: played again it observes ${text}, the record says ${record.observation}: take all chance from the seed of reset()`,
          );
        }
        total += reward;
        taken++;
      }
    }
    return {
      score: total,
      reasons: [`${taken} actions, ${attempt.over ? 'to the end' : 'not to the end'}, rewards ${total}`],
    };
  };
}
