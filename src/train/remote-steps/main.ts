/** @module The learner's process: holds weights and moments on a backend of its own, and steps them as it is told. Ends with the run that started it. */
import { handlesUsed } from '../../policy/backends/handles.ts';
import { selectBackend } from '../../policy/backends/select.ts';
import { modelOf } from '../../policy/models.ts';
import { IsogymError, messageOf } from '../../records/errors.ts';
import { onHost } from '../eager-steps.ts';
import type { Steps } from '../steps.ts';
import { stepsOf } from '../steps-of.ts';
import type { CallName, Calls, FromLearner, ToLearner, ToldError } from './protocol.ts';

type Handlers = { readonly [Name in CallName]: (of: Calls[Name]['of']) => Promise<Calls[Name]['gives']> };

let begun: Steps | undefined;

function steps(): Steps {
  if (begun === undefined) throw new Error('the learner has not begun');
  return begun;
}

const handlers: Handlers = {
  begin: async ({ model: { spec, backend, replay }, start }) => {
    await selectBackend(backend);
    begun = stepsOf(modelOf(spec), replay, start);
    return null;
  },
  update: async (options) => {
    const statistics = await steps().update(options);
    return { statistics, weights: await onHost(steps().weights) };
  },
  forget: async () => {
    await steps().forget();
    return null;
  },
  anchor: async () => {
    await steps().anchor();
    return null;
  },
  snapshot: () => steps().snapshot(),
};

async function answer({ call, of }: ToLearner): Promise<FromLearner> {
  try {
    const handle = handlers[call] as (of: unknown) => Promise<Calls[CallName]['gives']>;
    const gives = await handle(of);
    return { gives, recordings: begun?.recordings ?? 0, tensorHandles: handlesUsed() };
  } catch (error) {
    return { error: told(error) };
  }
}

function told(error: unknown): ToldError {
  const stack = error instanceof Error ? error.stack : undefined;
  if (!(error instanceof IsogymError)) return { message: messageOf(error), stack };
  const { code, message, hint, exitCode } = error;
  return { message, stack, own: { code, hint, exitCode } };
}

// Whatever is sent to all processes of a user or a job: the run decides what becomes of this one.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.on('disconnect', () => process.exit());

let queue = Promise.resolve();
process.on('message', (message: ToLearner) => {
  queue = queue.then(async () => void process.send?.(await answer(message)));
});
