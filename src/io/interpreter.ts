/** @module One interpreter process for each call of a function: what code in a sandbox costs elsewhere, to compare with. */
import { spawnSync } from 'node:child_process';
import { IsogymError, inputError } from '../records/errors.ts';

const CALL = {
  python: ['python3', ['-c', 'import json, sys; print(json.dumps([x * 2 for x in json.loads(sys.argv[1])]))']],
  node: [process.execPath, ['-e', 'console.log(JSON.stringify(JSON.parse(process.argv[1]).map((x) => x * 2)))']],
} as const;

/** Runs one call in a new process, and checks what it gave. @throws NO_INTERPRETER where there is none */
export function interpreterProcess(name: keyof typeof CALL): () => void {
  const [command, args] = CALL[name];
  const file = name === 'python' ? itself(command) : command;
  const call = () => {
    const { status, stdout, error } = spawnSync(file, [...args, '[1,2,3]'], { encoding: 'utf8', timeout: 20_000 });
    if (error !== undefined)
      throw inputError('NO_INTERPRETER', `expected ${file} to start, found ${error.message}`, 'Use --against node.');
    if (status !== 0 || stdout.replaceAll(' ', '').trim() !== '[2,4,6]') {
      throw new IsogymError(
        'NO_INTERPRETER',
        `expected [2,4,6] from ${file}, found ${stdout.trim() || `exit code ${status}`}`,
      );
    }
  };
  call();
  return call;
}

/** The interpreter behind a name on the path, which may be a script that looks for it. */
function itself(command: string): string {
  const { stdout } = spawnSync(command, ['-c', 'import sys; print(sys.executable)'], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  return stdout?.trim() || command;
}
