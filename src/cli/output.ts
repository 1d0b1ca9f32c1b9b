/** @module The process's own output: one JSON object that nothing else may stand beside, and what becomes of text that cannot be written. */
import { IsogymError } from '../records/errors.ts';

const { stdout, stderr } = process;
const writeResult = stdout.write.bind(stdout);

export function printJson(object: object): void {
  writeResult(`${JSON.stringify(object)}\n`);
}

/** From here on all but `printJson` goes to stderr, whoever writes it: a module of the config may print when it is loaded. */
export function reserveStdout(): void {
  stdout.write = stderr.write.bind(stderr) as typeof stdout.write;
}

/**
 * Text that cannot be written never ends the work: a run goes on to its end, and then `onFailure` has been told, once. Whoever
 * read the output and has left (`isogym show RUN | head`) is no failure.
 */
export function surviveLostOutput(onFailure: (error: Error) => void): void {
  let told = false;
  for (const [name, stream] of Object.entries({ stdout, stderr })) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE' || told) return;
      told = true;
      onFailure(
        new IsogymError('OUTPUT_LOST', `expected ${name} to take what is printed, found ${error.message}`, {
          cause: error,
          hint: 'What the command writes to files is whole. Print to somewhere with space.',
        }),
      );
    });
  }
}
