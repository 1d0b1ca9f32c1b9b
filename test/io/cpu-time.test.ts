import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { children, cpuMs } from '../../src/io/cpu-time.ts';

/** Computes for 300 ms of its own time, and waits for its input to end. */
const BUSY =
  "while (process.cpuUsage().user < 300_000); process.stdout.write('done'); process.stdin.resume().on('end', () => process.exit());";

test.runIf(process.platform === 'linux')(
  'what a child has computed counts while it lives and once it has ended',
  async () => {
    const before = cpuMs();
    const child = spawn(process.execPath, ['-e', BUSY], { stdio: ['pipe', 'pipe', 'inherit'] });
    await new Promise((resolve) => child.stdout.once('data', resolve));
    expect(children()).toContain(String(child.pid));
    // A tick of /proc is 10 ms; what this process computes meanwhile only adds.
    expect(cpuMs() - before).toBeGreaterThanOrEqual(290);
    const own = process.cpuUsage();
    child.stdin.end();
    await new Promise((resolve) => child.on('close', resolve));
    expect(children()).not.toContain(String(child.pid));
    const { user, system } = process.cpuUsage();
    // Less all that this process has computed itself.
    expect(cpuMs() - before - (user + system) / 1000).toBeGreaterThanOrEqual(290 - (own.user + own.system) / 1000);
  },
);
