/** @module `isogym/gym`: the declaration of an environment whose world is a class with `reset` and `step`. The class's other half is `isogym/gym/inside`. */
import { z } from 'zod';
import type { Json } from '../../records/json.ts';
import { deriveSeed, generator } from '../../records/random.ts';
import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  type ScriptedAction,
  type ScriptView,
} from '../environment.ts';
import { defineTool } from '../tool.ts';
import { DONE, type GymPublic, MAX_OBSERVATION, type MakeGym, observationText } from './inside.ts';

export type { GymClass, GymPublic, GymReset, GymStep, MakeGym } from './inside.ts';

export interface GymDefinition<Options>
  extends Pick<
    EnvironmentDefinition<Options>,
    'name' | 'world' | 'words' | 'limits' | 'reset' | 'memoryMiB' | 'isolation'
  > {
  /** The environment's options, which the class is made with. Default: none. */
  readonly options?: z.ZodType<Options>;
  /** The same as in the world and the verifier. Called out here once a task, for its first observation. */
  readonly make: MakeGym<Options>;
  /** Names of the actions 0, 1, 2, …. */
  readonly actions: readonly string[];
  /** Goes before the first observation. */
  readonly prompt: string;
  /** Steps that the class may be taken; the final answer is one request more. */
  readonly maxSteps: number;
  /** For tabular policies: how many states there are, and the number of each. Default for `stateOf`: the observation itself, a number. */
  readonly states?: number;
  readonly stateOf?: (observation: Json) => number;
  /** The best action, by its name. */
  readonly oracle?: (observation: Json, view: ScriptView) => string;
}

/**
 * One tool `step` with the actions by name, the final answer `done`, the compact format. Tasks differ by the seed that `reset` is
 * given. A policy ends the episode itself once the class says `terminated` or `truncated`: its tabular view and its oracle do so.
 * @throws INVALID_ENVIRONMENT, INVALID_TOOL
 */
export function gymEnvironment<Options>(o: GymDefinition<Options>): Environment<Options> {
  const {
    name,
    world,
    make,
    actions,
    prompt,
    maxSteps,
    states,
    stateOf = Number,
    oracle,
    limits,
    words = [],
    ...more
  } = o;
  const options = o.options ?? (z.strictObject({}) as unknown as z.ZodType<Options>);
  const step = (action: string): ScriptedAction => ({ calls: [{ tool: 'step', arguments: { action } }] });
  const { reset, memoryMiB, isolation } = more;
  return defineEnvironment<Options>({
    name,
    options,
    world,
    tools: [
      defineTool({
        name: 'step',
        description: 'Takes an action and says what is observed then, and whether the attempt has come to its end.',
        parameters: z.strictObject({ action: z.enum(actions) }),
        effect: 'write',
        maxOutput: MAX_OBSERVATION + 100,
      }),
    ],
    answer: z.enum([DONE]),
    format: 'compact',
    words: [...new Set(['step ', 'answer ', DONE, ' terminated', ' truncated', ...actions, ...words])],
    limits: { ...limits, maxSteps: maxSteps + 1 },
    ...(reset === undefined ? {} : { reset }),
    ...(memoryMiB === undefined ? {} : { memoryMiB }),
    ...(isolation === undefined ? {} : { isolation }),
    task(seed, index, settings) {
      // As Gymnasium's own seeds: non-negative and of 31 bits.
      const number = Math.floor(generator(deriveSeed(seed, name, index))() * 2 ** 31);
      const first = observationText(make(settings).reset(number).observation);
      const task: GymPublic = { seed: number, settings: settings as Json, actions, first };
      return { id: `${name}-${index}`, prompt: `${prompt}${first}`, public: task as unknown as Json, held: null };
    },
    scripts:
      oracle === undefined
        ? {}
        : {
            oracle: (view) => {
              const { observation, over } = latest(view);
              return over ? { final: DONE } : step(oracle(observation, view));
            },
          },
    ...(states === undefined
      ? {}
      : {
          tabular: {
            states,
            actions,
            observe: (view) => stateOf(latest(view).observation),
            act: (action, view) => (latest(view).over ? { final: DONE } : step(actions[action] ?? '')),
          },
        }),
  });
}

/** What was observed last. */
function latest({ task, steps }: ScriptView): { readonly observation: Json; readonly over: boolean } {
  const records = steps.flatMap((one) => one.calls).filter((record) => record.error === undefined);
  const text = records.at(-1)?.observation ?? (task.public as unknown as GymPublic).first;
  const [end = ''] = / (?:terminated|truncated)$/.exec(text) ?? [];
  const said = text.slice(0, text.length - end.length);
  try {
    return { observation: JSON.parse(said) as Json, over: end !== '' };
  } catch {
    return { observation: said, over: end !== '' };
  }
}
