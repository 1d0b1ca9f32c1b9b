/** @module What is trained and how it acts: a model, and the policies made of its weights. The loop does not know which kind it has. */
import type { Environment, TabularView } from '../env/environment.ts';
import type { PolicySpec } from '../env/rollouts/rollouts.ts';
import { TransformerPolicy } from '../policy/generate.ts';
import { actionGrammar } from '../policy/grammar/index.ts';
import type { Model, NamedTensors, Weights } from '../policy/model.ts';
import { type ModelSpec, modelOf } from '../policy/models.ts';
import { canReplay } from '../policy/replay/session.ts';
import { Tokenizer } from '../policy/tokenizer.ts';
import {
  fromHuggingFaceWeights,
  toHuggingFaceConfig,
  toHuggingFaceWeights,
} from '../policy/transformer/hugging-face.ts';
import { ReplayedDecoder } from '../policy/transformer/replayed-decoder.ts';
import { parameterCount } from '../policy/transformer/weights.ts';
import { inputError } from '../records/errors.ts';
import type { PackOptions } from './batch.ts';
import type { Config } from './config.ts';
import type { EvaluationMode } from './evaluate.ts';

export interface Agent {
  readonly model: Model;
  /** What `model` is made of. */
  readonly spec: ModelSpec;
  /** What masks the logits in the loss, the same as in sampling; without a grammar every action is always allowed. */
  readonly packing: Pick<PackOptions, 'grammar'>;
  readonly temperature: number;
  /** Numbers to be learnt. */
  readonly parameters: number;
  /** The policy that these weights make. The weights stay the learner's; nothing here disposes them. */
  policy(weights: NamedTensors, version: number, mode: EvaluationMode): Promise<PolicySpec>;
  readonly files: WeightFiles;
  /** How many shapes of the decode step were recorded so far; 0 where it is not replayed. */
  recordings(): number;
  /** Share of padding in what replayed decode steps were given so far, in [0, 1); null where none was. */
  decodePaddingShare(): number | null;
  /** Frees what its policies share in the backend; the next policy begins it anew. */
  close(): void;
}

/** How the weights are written to a checkpoint, so that other programs can open them. */
export interface WeightFiles {
  /** Files that say what the weights are of. */
  describe(): Readonly<Record<string, string>>;
  outward(weights: Weights): Weights;
  inward(file: Weights): Weights;
}

/**
 * @param replay whether a transformer decodes as recorded graphs where the backend can
 * @throws POLICY_UNFIT where the environment has no view for a tabular policy
 */
export function agentOf(policy: Config['policy'], environment: Environment, replay = false): Agent {
  return policy.kind === 'tabular' ? tabularAgent(policy, environment) : transformerAgent(policy, environment, replay);
}

function tabularAgent(policy: Extract<Config['policy'], { kind: 'tabular' }>, environment: Environment): Agent {
  const view = environment.tabular;
  if (view === undefined) {
    throw inputError(
      'POLICY_UNFIT',
      `policy.kind: expected transformer, found tabular: the environment ${environment.name} declares no tabular view`,
      'Set policy.kind to transformer, or give the environment a `tabular` view.',
    );
  }
  const { temperature } = policy;
  const spec = { kind: 'tabular', states: view.states, actions: view.actions.length } as const;
  return {
    model: modelOf(spec),
    spec,
    packing: {},
    temperature,
    parameters: view.states * view.actions.length,
    policy: async (weights, version, mode) => {
      const table = (await weights.table?.data()) as Float32Array;
      return { kind: 'tabular', table, version, temperature, greedy: mode === 'greedy' };
    },
    files: { describe: () => ({}), outward: (weights) => weights, inward: (file) => tableOf(file, view) },
    recordings: () => 0,
    decodePaddingShare: () => null,
    close: () => undefined,
  };
}

/** @throws Error where the file holds another table than the environment's view asks for */
function tableOf(file: Weights, { states, actions }: TabularView): Weights {
  const found = file.table === undefined ? 'none' : `[${file.table.shape.join(', ')}]`;
  if (found !== `[${states}, ${actions.length}]`) {
    throw new Error(`expected a table [${states}, ${actions.length}] of states and actions, found ${found}`);
  }
  return file;
}

function transformerAgent(
  policy: Extract<Config['policy'], { kind: 'transformer' }>,
  environment: Environment,
  replay: boolean,
): Agent {
  const tokenizer = new Tokenizer(environment.words);
  const grammar = actionGrammar(environment, tokenizer);
  const { kind: _, temperature, ...shape } = policy;
  const config = { ...shape, vocabulary: tokenizer.size, epsilon: 1e-5, tied: true };
  const spec = { kind: 'transformer', config } as const;
  // One for all versions of the weights, so that nothing is recorded twice.
  const decoders: Partial<Record<EvaluationMode, ReplayedDecoder>> = {};
  const decoderFor = (mode: EvaluationMode): ReplayedDecoder => {
    decoders[mode] ??= new ReplayedDecoder({ config, grammar, temperature: mode === 'greedy' ? null : temperature });
    return decoders[mode];
  };
  const hub = toHuggingFaceConfig(config, { maxPositions: environment.limits.maxTokens, endToken: tokenizer.end });
  return {
    model: modelOf(spec),
    spec,
    packing: { grammar: { grammar, vocabulary: tokenizer.size } },
    temperature,
    parameters: parameterCount(config),
    policy: async (weights, version, mode) => ({
      kind: 'tokens',
      policy: new TransformerPolicy({
        config,
        weights,
        grammar,
        tokenizer,
        temperature,
        greedy: mode === 'greedy',
        version,
        replay: replay && canReplay() ? decoderFor(mode) : undefined,
      }),
    }),
    files: {
      describe: () => ({ 'config.json': `${JSON.stringify(hub, null, 2)}\n` }),
      outward: toHuggingFaceWeights,
      inward: (file) => fromHuggingFaceWeights(config, file),
    },
    recordings: () => Object.values(decoders).reduce((sum, decoder) => sum + decoder.recordings, 0),
    decodePaddingShare: () => {
      let [fed, given] = [0, 0];
      for (const { tokens } of Object.values(decoders)) {
        fed += tokens.fed;
        given += tokens.given;
      }
      return given === 0 ? null : 1 - fed / given;
    },
    close: () => {
      for (const decoder of Object.values(decoders)) decoder.dispose();
    },
  };
}
