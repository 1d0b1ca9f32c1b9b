/** @module Steps in a process of its own, so that what blocks there does not block rollouts here. Its weights are mirrored here after each update. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as tf from '@tensorflow/tfjs';
import { resolveModule } from '../../env/sandbox/resolve-module.ts';
import type { NamedTensors, Weights } from '../../policy/model.ts';
import { IsogymError } from '../../records/errors.ts';
import { onDevice } from '../eager-steps.ts';
import type { Steps, StepsSnapshot, StepsStart, UpdateOptions, UpdateStatistics } from '../steps.ts';
import type { CallName, Calls, FromLearner, RemoteModel, ToLearner } from './protocol.ts';

/** Of what it wrote to stderr, where TensorFlow, V8 and Node tell first why they gave up, and then from where. */
const STDERR_CHARACTERS = 20_000;
const STDERR_LINES = 5;
/** What TensorFlow writes there as it starts, stacks and heap figures, and Node's own version. */
const CHATTER = /^(WARNING: All log messages before absl|I\d{4} |\s+at |\s*\d+: 0x|-----|<--- |\[\d+:0x|Node\.js v)/;

interface Waiting {
  readonly resolve: (gives: Calls[CallName]['gives']) => void;
  readonly reject: (error: unknown) => void;
}

export class RemoteSteps implements Steps {
  readonly #child: ChildProcess;
  readonly #waiting: Waiting[] = [];
  readonly #begun: Promise<unknown>;
  #weights: Weights;
  #mirror: NamedTensors | undefined;
  #recordings = 0;
  #tensorHandles: number | null = null;
  #stderr = '';
  #lost: IsogymError | undefined;

  /** @param model as the process makes it for itself, on a backend of its own. What keeps it from that is thrown by the first call. */
  constructor(model: RemoteModel, start: StepsStart) {
    this.#weights = start.weights;
    const main = fileURLToPath(resolveModule(new URL('./main.ts', import.meta.url)));
    this.#child = fork(main, [], {
      execArgv: ['--no-warnings'],
      serialization: 'advanced',
      // In a process group of its own: Ctrl-C is the run's to hear, which decides what becomes of it.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(0, STDERR_CHARACTERS);
    });
    this.#child.on('message', (message: FromLearner) => this.#hear(message));
    this.#child.on('error', (error) => this.#lose(`it cannot be reached: ${error.message}`));
    // After `exit`, once stderr has been read to its end.
    this.#child.on('close', (code, signal) =>
      this.#lose(`its process ended with ${signal === null ? `exit code ${code}` : signal}`),
    );
    this.#begun = this.#ask('begin', { model, start });
    // It is told by the calls.
    this.#begun.catch(() => {});
  }

  get weights(): NamedTensors {
    this.#mirror ??= onDevice(this.#weights);
    return this.#mirror;
  }

  async hostWeights(): Promise<Weights> {
    return this.#weights;
  }

  get recordings(): number {
    return this.#recordings;
  }

  get tensorHandles(): number | null {
    return this.#tensorHandles;
  }

  async update(options: UpdateOptions): Promise<UpdateStatistics> {
    const { statistics, weights } = await this.#call('update', options);
    this.#forgetMirror();
    this.#weights = weights;
    return statistics;
  }

  async forget(): Promise<void> {
    await this.#call('forget', null);
  }

  async anchor(): Promise<void> {
    await this.#call('anchor', null);
  }

  snapshot(): Promise<StepsSnapshot> {
    return this.#call('snapshot', null);
  }

  /** Ends the process; what it has not answered by then is lost. */
  dispose(): void {
    this.#forgetMirror();
    this.#lost ??= lost('it was disposed of');
    this.#child.kill('SIGKILL');
  }

  async #call<Name extends CallName>(call: Name, of: Calls[Name]['of']): Promise<Calls[Name]['gives']> {
    await this.#begun;
    return this.#ask(call, of);
  }

  #ask<Name extends CallName>(call: Name, of: Calls[Name]['of']): Promise<Calls[Name]['gives']> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    const { promise, resolve, reject } = Promise.withResolvers<Calls[CallName]['gives']>();
    // That it is gone is told by `error` or `close`.
    this.#child.send({ call, of } satisfies ToLearner, () => {});
    this.#waiting.push({ resolve, reject });
    return promise as Promise<Calls[Name]['gives']>;
  }

  #hear(message: FromLearner): void {
    const call = this.#waiting.shift();
    if ('error' in message) {
      call?.reject(readError(message.error));
      return;
    }
    this.#recordings = message.recordings;
    this.#tensorHandles = message.tensorHandles;
    call?.resolve(message.gives);
  }

  #lose(why: string): void {
    const words = this.#stderr.split('\n').filter((line) => line.trim() !== '' && !CHATTER.test(line));
    const said = words.slice(0, STDERR_LINES);
    this.#lost ??= lost([why, ...(said.length === 0 ? [] : ['it had said:', ...said])].join('\n'));
    for (const { reject } of this.#waiting.splice(0)) reject(this.#lost);
  }

  #forgetMirror(): void {
    if (this.#mirror !== undefined) tf.dispose(Object.values(this.#mirror));
    this.#mirror = undefined;
  }
}

function lost(why: string): IsogymError {
  return new IsogymError('LEARNER_LOST', `expected the process of the learner to go on, found that ${why}`, {
    hint: 'isogym train --resume RUN goes on from the latest checkpoint. After SIGKILL look at the memory: mostly the system was short of it.',
  });
}

function readError({ message, stack, own }: Extract<FromLearner, { error: unknown }>['error']): Error {
  if (own === undefined) return Object.assign(new Error(message), stack === undefined ? {} : { stack });
  const { code, hint, exitCode } = own;
  const error = new IsogymError(code, message, { exitCode, ...(hint === undefined ? {} : { hint }) });
  return Object.assign(error, stack === undefined ? {} : { stack });
}
