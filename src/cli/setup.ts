/** @module `isogym setup`: brings TensorFlow's C library for the CPU or for a GPU, and takes it away again. */
import { createInterface } from 'node:readline/promises';
import { Command } from 'commander';
import { inputError } from '../records/errors.ts';
import type { Source } from '../setup/install.ts';
import type { SetupKind } from '../setup/wheels.ts';
import { commandLine, JSON_OPTION, type LongCommand, type Outcome, runLong } from './session.ts';

interface Flags {
  readonly yes?: boolean;
  readonly wheels?: string;
  readonly tensorflow?: string;
  readonly withoutGpu?: boolean;
  readonly remove?: boolean;
  readonly json?: boolean;
}

const ABOUT: Readonly<Record<SetupKind, string>> = {
  native: "Set up TensorFlow's C library for the CPU: fetches 0.3 GB, keeps 0.9 GB.",
  cuda: "Set up TensorFlow's C library with CUDA for an NVIDIA GPU: fetches 3.4 GB, keeps 5.6 GB.",
};

export function setupCommand(): Command {
  const setup = new Command('setup').description('Set up a faster tensor backend: native (CPU) or cuda (NVIDIA GPU).');
  for (const kind of ['native', 'cuda'] as const) {
    const command = new Command(kind)
      .description(ABOUT[kind])
      .option('--yes', 'ask nothing')
      .option('--wheels <dir>', 'take the wheels from this folder instead of asking pip')
      .option('--tensorflow <dir>', "build against the TensorFlow in this folder (a wheel's, or the C library's)")
      .option('--remove', 'undo it');
    if (kind === 'cuda') command.option('--without-gpu', 'go on where no GPU is found');
    setup.addCommand(
      command
        .option(...JSON_OPTION)
        .action((flags: Flags) => runLong(flags.json === true, (run) => setUp(kind, flags, run))),
    );
  }
  return setup;
}

async function setUp(kind: SetupKind, flags: Flags, { reporter, signal }: LongCommand): Promise<Outcome> {
  const { install, remove } = await import('../setup/install.ts');
  if (flags.remove === true) {
    const removed = remove(kind);
    return {
      summary: { kind, removed },
      text: removed ? `${kind} is removed.` : `${kind} was not set up.`,
      interrupted: false,
    };
  }
  try {
    const { folder, manifest, changed } = await install({
      kind,
      source: sourceOf(flags),
      withoutGpu: flags.withoutGpu === true,
      note: reporter.note,
      agree: () => (flags.yes === true ? Promise.resolve(true) : ask(signal)),
      signal,
    });
    const state = changed ? 'is set up' : 'was set up already, and works';
    return {
      summary: { kind, changed, folder, manifest },
      text: `${kind} ${state}: TensorFlow ${manifest.tensorflow}, ${manifest.device}.`,
      interrupted: false,
    };
  } catch (error) {
    if (!signal.aborted) throw error;
    return { summary: { kind, changed: false, interrupted: true }, text: 'Nothing is left behind.', interrupted: true };
  }
}

function sourceOf({ wheels, tensorflow }: Flags): Source {
  if (wheels !== undefined && tensorflow !== undefined) {
    throw inputError('USAGE', 'expected one of --wheels and --tensorflow, found both');
  }
  if (wheels !== undefined) return { from: 'wheels', folder: wheels };
  return tensorflow === undefined ? { from: 'pip' } : { from: 'tensorflow', folder: tensorflow };
}

/** @throws SETUP_UNASKED where nobody can be asked */
async function ask(signal: AbortSignal): Promise<boolean> {
  if (process.stdin.isTTY !== true) {
    throw inputError(
      'SETUP_UNASKED',
      'expected somebody to ask, found no terminal',
      `${commandLine(process.argv.slice(2))} --yes`,
    );
  }
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await lines.question('Go on? [y/N] ', { signal })).trim());
  } finally {
    lines.close();
  }
}
