/** @module The tabular policy: a softmax over the actions of a discretised state, drawn inside the worker. */
import type { TabularView } from '../env/environment.ts';
import type { Format } from '../env/format.ts';
import { IsogymError } from '../records/errors.ts';
import type { Policy, TaskOf } from './policy.ts';
import { actionInWords } from './reply.ts';
import { greedyToken, sampleToken } from './sampling.ts';

/** The policy's name in records. */
export const TABULAR = 'tabular';

/**
 * π(a | s) = exp(θ_sa / T) / Σ_b exp(θ_sb / T), by inverse CDF in the order of the actions (see `sampleToken`).
 *
 * Its tokens are its own: a segment is state, action, state, action, …, the states given and the actions sampled. As in
 * `tabularModel`, action a is token a, and state s is token actions + s.
 *
 * @param table θ [states × actions], row-major.
 * @param o.temperature T > 0.
 * @param o.greedy takes the first largest, without logprobs: nothing is sampled.
 * @throws TABLE_SHAPE where the table is not states × actions long.
 */
export function tabularPolicy(
  view: TabularView,
  table: Float32Array,
  o: { readonly version: number; readonly temperature: number; readonly greedy: boolean },
  format: Format,
  taskOf: TaskOf,
): Policy {
  const actions = view.actions.length;
  if (table.length !== view.states * actions) {
    throw new IsogymError(
      'TABLE_SHAPE',
      `expected a table of ${view.states} states × ${actions} actions = ${view.states * actions} numbers, found ${table.length}`,
    );
  }
  const all = Int32Array.from({ length: actions }, (_, action) => action);
  return {
    name: TABULAR,
    version: o.version,
    tokens: 'own',
    request({ episodeId, steps, random }) {
      const seen = { task: taskOf(episodeId), steps, random };
      const state = view.observe(seen);
      if (!(Number.isInteger(state) && state >= 0 && state < view.states)) {
        throw new IsogymError(
          'TABULAR_STATE',
          `the tabular view: expected a state from 0 to ${view.states - 1}, found ${state}`,
        );
      }
      const row = state * actions;
      const { id, logprob } = o.greedy
        ? { id: greedyToken(table, row, all), logprob: null }
        : sampleToken(table, row, all, o.temperature, random());
      return {
        action: actionInWords(view.act(id, seen), steps, format),
        observed: [actions + state],
        ids: [id],
        logprobs: logprob === null ? null : [logprob],
        cutOff: false,
      };
    },
  };
}
