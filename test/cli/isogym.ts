/** Runs the real command, as a person would from `cwd`. */
import { spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const BIN = fileURLToPath(new URL('../../bin/isogym.js', import.meta.url));

/** As npx starts it, whoever started the tests: commands are then printed as `npx isogym …`. */
const env = { ...process.env, npm_command: 'exec' };

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function isogym(cwd: string, ...args: readonly string[]): Ran {
  const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, ...args], { cwd, env, encoding: 'utf8' });
  return { code: status, stdout, stderr };
}

/** Sends `signal` once stdout or stderr has shown `sign`. */
export function isogymInterrupted(cwd: string, sign: string, args: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [BIN, ...args], { cwd, env });
    const text = { stdout: '', stderr: '' };
    let sent = false;
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].on('data', (part: Buffer) => {
        text[name] += part;
        if (!sent && text[name].includes(sign)) sent = child.kill('SIGINT');
      });
    }
    child.on('close', (code) => resolve({ code, ...text }));
  });
}
