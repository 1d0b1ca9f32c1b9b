/** @module The environment's own equipment for a rollout: its format, tokenizer and grammar, and the policies that act beside it. */
import { actionGrammar, type Grammar } from '../policy/grammar/index.ts';
import type { Policy, TaskOf } from '../policy/policy.ts';
import { recordedPolicy } from '../policy/recorded.ts';
import { scriptedPolicy } from '../policy/scripted.ts';
import { tabularPolicy } from '../policy/tabular-policy.ts';
import { textsPolicy } from '../policy/texts.ts';
import { Tokenizer } from '../policy/tokenizer.ts';
import { uniformPolicy } from '../policy/uniform.ts';
import { IsogymError, inputError } from '../records/errors.ts';
import { nearest } from '../records/nearest.ts';
import type { Environment } from './environment.ts';
import { type Format, formatOf } from './format.ts';
import type { InsideSpec, RolloutRequest, RolloutSetup } from './rollouts/rollouts.ts';

export class Inside {
  readonly environment: Environment;
  readonly format: Format;
  readonly tokenizer: Tokenizer;
  #grammar: Grammar | undefined;

  /** @throws INVALID_FORMAT, INVALID_WORDS */
  constructor(environment: Environment, overrides: Pick<RolloutSetup, 'maxSteps' | 'reset' | 'isolation'>) {
    const { limits } = environment;
    const { maxSteps = limits.maxSteps, reset = environment.reset, isolation = environment.isolation } = overrides;
    this.environment = { ...environment, reset, isolation, limits: { ...limits, maxSteps } };
    this.format = formatOf(environment);
    this.tokenizer = new Tokenizer(environment.words);
  }

  /** Made when it is first asked for. */
  get grammar(): Grammar {
    this.#grammar ??= actionGrammar(this.environment, this.tokenizer);
    return this.#grammar;
  }

  /** @param requests the episodes that it will act in. @throws UNKNOWN_SCRIPT, POLICY_UNFIT, TABLE_SHAPE */
  policy(spec: InsideSpec, requests: readonly RolloutRequest[]): Policy {
    const taskOf = tasksOf(requests);
    const { name, scripts, tabular } = this.environment;
    switch (spec.kind) {
      case 'scripted': {
        const script = Object.hasOwn(scripts, spec.script) ? scripts[spec.script] : undefined;
        if (script === undefined) throw unknownScript(spec.script, name, Object.keys(scripts));
        return scriptedPolicy(spec.script, script, this.format, this.tokenizer, taskOf);
      }
      case 'uniform':
        return uniformPolicy(this.grammar, this.format, this.tokenizer);
      case 'tabular':
        if (tabular === undefined) {
          throw inputError('POLICY_UNFIT', `a tabular policy wants a tabular view, which ${name} does not declare`);
        }
        return tabularPolicy(tabular, spec.table, spec, this.format, taskOf);
      case 'texts': {
        const starts = new Map(requests.map(({ id, fork }) => [id, fork?.step ?? 0]));
        return textsPolicy(spec.texts, (id) => starts.get(id) ?? 0, this.format, this.tokenizer);
      }
      case 'recorded':
        return recordedPolicy(spec.name, spec.episodes);
    }
  }
}

function tasksOf(requests: readonly RolloutRequest[]): TaskOf {
  const tasks = new Map(requests.map(({ id, task }) => [id, task]));
  return (id) => {
    const task = tasks.get(id);
    if (task === undefined) throw new IsogymError('INTERNAL', `expected an episode of this run, found ${id}`);
    return task;
  };
}

function unknownScript(script: string, environment: string, known: readonly string[]) {
  const close = nearest(script, known);
  return inputError(
    'UNKNOWN_SCRIPT',
    `expected a script of ${environment}${known.length > 0 ? ` (${known.join(', ')})` : ', which has none'}, found ${JSON.stringify(script)}`,
    close === undefined ? undefined : `did you mean ${close}?`,
  );
}
