/** @module Checks of whole episodes: seeds, scripts, the tabular view, and what the oracle needs. */
import { makeTasks } from '../env/make-tasks.ts';
import type { InsideSpec } from '../env/rollouts/rollouts.ts';
import type { Grammar } from '../policy/grammar/index.ts';
import { stopRule } from '../records/stop-reason.ts';
import type { Episode } from '../records/trajectory.ts';
import { admits } from './draw.ts';
import { type CheckResult, failed, passed, short, skipped } from './result.ts';
import type { Call, Trial } from './trial.ts';

/** Episodes of a policy that are compared: enough to see a difference, few enough for a second. */
const COMPARED = 8;

const say = ({ taskId, stop, stopDetail }: Episode) =>
  short(`task ${taskId}: ${stop}${stopDetail === undefined ? '' : `, ${stopDetail}`}`);

/** The policies that the environment brings along, and the uniform one where there is a grammar. */
function specs(trial: Trial, grammar: Grammar | undefined): readonly InsideSpec[] {
  const { scripts, tabular } = trial.environment;
  return [
    ...Object.keys(scripts).map((script): InsideSpec => ({ kind: 'scripted', script })),
    ...(grammar === undefined ? [] : [{ kind: 'uniform' } as const]),
    ...(tabular === undefined ? [] : [untaught(tabular)]),
  ];
}

function untaught({ states, actions }: { readonly states: number; readonly actions: readonly string[] }): InsideSpec {
  const table = new Float32Array(states * actions.length);
  return { kind: 'tabular', table, version: 0, temperature: 1, greedy: false };
}

export async function checkSameSeed(trial: Trial, grammar: Grammar | undefined): Promise<CheckResult> {
  const name = 'same seed';
  const all = specs(trial, grammar);
  if (all.length === 0) return skipped(name, 'no policy to act with: no grammar, no script, no tabular view');
  let count = 0;
  for (const spec of all) {
    for (const task of trial.tasks.slice(0, COMPARED)) {
      const first = await trial.episode(trial.host(), task, spec);
      const again = await trial.episode(trial.host(), task, spec);
      count++;
      if (JSON.stringify(first) === JSON.stringify(again)) continue;
      const step = first.steps.findIndex((one, i) => JSON.stringify(one) !== JSON.stringify(again.steps[i]));
      return failed(
        name,
        `${first.policy}, task ${task.id}: two episodes of one seed differ from step ${step + 1} on`,
        'Take chance from the `random` that create() or the script is handed; keep nothing in module variables.',
      );
    }
  }
  return passed(name, `${count} episodes of ${all.length} policies, each run twice in fresh worlds: the same bytes`);
}

/** Another seed gives something else: other tasks, or another course of the same one. */
export function checkOtherSeed<Options>(trial: Trial, options: Options, calls: readonly Call[]): CheckResult {
  const name = 'other seed';
  const { tasks, environment } = trial;
  const content = ({ prompt, public: seen, held }: (typeof tasks)[number]) => JSON.stringify([prompt, seen, held]);
  const others = makeTasks(environment, { seed: `${trial.seed}-other`, from: 0, count: tasks.length, options });
  const changed = tasks.filter((task, i) => content(task) !== content(others[i] as typeof task)).length;
  const different = new Set(tasks.map(content)).size;
  const observations = (seed: string) =>
    tasks
      .slice(0, COMPARED)
      .map((task) => trial.play(trial.host(), task, calls, seed).map((record) => record.observation));
  const before = observations(trial.seed);
  const after = observations(`${trial.seed}-other`);
  const swayed = before.filter((seen, i) => JSON.stringify(seen) !== JSON.stringify(after[i])).length;
  const seen = `${changed} of ${tasks.length} tasks change with the task seed, ${different} of ${tasks.length} differ from each other, the world's own chance shows in ${swayed} of ${before.length}`;
  if (changed > 0 || different > 1 || swayed > 0) return passed(name, seen);
  return failed(
    name,
    seen,
    'Every task and every episode is the same one: draw tasks from `seed` and `index`, or let the world use `random`.',
  );
}

/** Every script comes to an end of its own making, with actions that a policy could have written too. */
export async function checkScripts(trial: Trial, grammar: Grammar | undefined): Promise<CheckResult> {
  const name = 'scripts';
  const names = Object.keys(trial.environment.scripts);
  if (names.length === 0) return skipped(name, 'the environment declares none');
  let actions = 0;
  for (const script of names) {
    for (const episode of await trial.episodes({ kind: 'scripted', script })) {
      if (stopRule(episode.stop).ends === 'failed') {
        return failed(
          name,
          `${script}, ${say(episode)}`,
          'A script must give an action for whatever it can have seen.',
        );
      }
      for (const { action, calls } of episode.steps) {
        actions++;
        const refused = calls.find(
          (call) => call.error === 'unknown-tool' || call.error === 'malformed' || call.error === 'invalid-arguments',
        );
        if (refused !== undefined) {
          return failed(
            name,
            short(`${script}, task ${episode.taskId}: ${action.text}: ${refused.observation}`),
            'Let the script write what the tools declare.',
          );
        }
        const single = action.calls.length < 2;
        if (grammar !== undefined && single && !admits(grammar, trial.inside.tokenizer, action.text)) {
          return failed(
            name,
            short(`${script}, task ${episode.taskId}: the grammar does not admit ${JSON.stringify(action.text)}`),
            'No trained policy could ever write it: let the schemas of tools and answer admit what the script writes.',
          );
        }
      }
    }
  }
  const within = grammar === undefined ? '' : ', all in the grammar';
  return passed(name, `${names.join(', ')}: ${actions} actions on ${trial.tasks.length} tasks${within}`);
}

export async function checkTabular(trial: Trial): Promise<CheckResult> {
  const name = 'tabular';
  const view = trial.environment.tabular;
  if (view === undefined) return skipped(name, 'the environment declares no tabular view');
  const states = new Set<number>();
  let actions = 0;
  for (const seed of ['0', '1']) {
    for (const episode of await trial.episodes(untaught(view), seed)) {
      if (episode.stop === 'policy-failure') {
        return failed(
          name,
          say(episode),
          'observe must give a state number below `states`, act an action for every state.',
        );
      }
      for (const { ids, actionMask } of episode.segments) {
        for (const [i, id] of ids.entries()) if (actionMask[i] === 0) states.add(id - view.actions.length);
      }
      for (const { action, calls } of episode.steps) {
        actions++;
        const refused = calls.find((call) => call.attempts === 0);
        if (refused === undefined || refused.error === 'too-many-calls') continue;
        return failed(
          name,
          short(`task ${episode.taskId}: ${action.text}: ${refused.observation}`),
          'Let act() write what the tools declare.',
        );
      }
    }
  }
  return passed(
    name,
    `${actions} random actions, ${states.size} of ${view.states} states met, every one of them below ${view.states}`,
  );
}

/** What the oracle needs of each limit. */
export function checkLimits(trial: Trial, oracle: readonly Episode[] | undefined): CheckResult {
  const name = 'limits';
  if (oracle === undefined) return skipped(name, 'no script is called oracle');
  const { maxSteps, maxTokens, maxActionTokens, maxCalls } = trial.environment.limits;
  const need = { steps: 0, tokens: 0, action: 0, calls: 0 };
  for (const episode of oracle) {
    if (episode.stop !== 'final') {
      return failed(
        name,
        `the oracle cannot finish: ${say(episode)}`,
        `Raise limits.${episode.stop === 'max-steps' ? 'maxSteps' : 'maxTokens or limits.maxActionTokens'}, or shorten prompt and observations (words make texts shorter).`,
      );
    }
    const lengths = episode.steps.map(({ tokens }) => tokens.end - tokens.start);
    const calls = episode.steps.reduce((sum, step) => sum + step.calls.length, 0);
    need.steps = Math.max(need.steps, episode.steps.length);
    need.tokens = Math.max(need.tokens, ...episode.segments.map(({ ids }) => ids.length));
    need.action = Math.max(need.action, ...lengths);
    need.calls = Math.max(need.calls, calls);
  }
  return passed(
    name,
    `the oracle needs at most ${need.steps} of ${maxSteps} steps, ${need.tokens} of ${maxTokens} tokens, ${need.action} of ${maxActionTokens} in an action, ${need.calls} of ${maxCalls} calls`,
  );
}
