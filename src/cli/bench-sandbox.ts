/** @module `isogym bench sandbox`: what sealing costs by itself, and how soon a host is whole again after an attack. */
import { Command } from 'commander';
import { oneOf, whole } from './bench-options.ts';
import { JSON_OPTION, type LongCommand, type Outcome, runLong } from './session.ts';

interface Flags {
  readonly rounds: number;
  readonly against: 'python' | 'node' | 'none';
  readonly json?: boolean;
}

export function benchSandboxCommand(): Command {
  return new Command('sandbox')
    .description("Time resets, sealed calls, a policy's code, and the recovery after an attack.")
    .option('--rounds <n>', 'measurements, of which the median stands', whole, 5)
    .option(
      '--against <interpreter>',
      'what is started for each call, to compare with: python (python3 on the path), node (this one), none',
      oneOf(['python', 'node', 'none']),
      'python',
    )
    .option(...JSON_OPTION)
    .action((flags: Flags) => runLong(flags.json === true, (run) => benchSandbox(flags, run)));
}

async function benchSandbox(flags: Flags, { reporter, signal }: LongCommand): Promise<Outcome> {
  const { setTimeout: sleep } = await import('node:timers/promises');
  const { moduleUrl } = await import('../io/modules.ts');
  const { importEnvironment } = await import('../env/load.ts');
  const { benchCall, benchCode, benchRecovery, benchResets } = await import('../bench/sandbox.ts');
  const { interpreterProcess } = await import('../io/interpreter.ts');
  const { examine } = await import('../io/machine.ts');
  const { now } = await import('../io/clock.ts');
  const { table } = await import('../io/table.ts');
  const environment = await importEnvironment(moduleUrl('environment', 'toy-lookup').href);
  const interpreter = flags.against === 'none' ? undefined : interpreterProcess(flags.against);
  const { parseOptions } = await import('../io/config-problems.ts');
  const options = {
    environment,
    options: parseOptions(environment.options, {}),
    rounds: flags.rounds,
    now,
    signal,
    sleep,
    interpreter,
  };
  reporter.note('resets');
  const resets = await benchResets(options);
  reporter.note('calls');
  const call = await benchCall(options, { tool: 'lookup', arguments: { key: 'Oslo' } });
  reporter.note("a policy's code");
  const code = await benchCode(options);
  reporter.note('attacks');
  const recovery = await benchRecovery(options);
  const figure = (n: number | null, digits = 0) => (n === null ? '-' : n.toFixed(digits));
  const text = [
    table(
      ['reset', 'per second', 'p50 ms'],
      resets.map(({ level, perSecond, p50Ms }) => [level, figure(perSecond), figure(p50Ms, 4)]),
    ),
    table(['call', 'sealed µs', 'direct µs'], [[call.tool, figure(call.sealedUs, 2), figure(call.directUs, 2)]]),
    table(
      ["a policy's code", 'per second', `× a ${flags.against} process a call`],
      [
        ['a fresh context for each call', figure(code.freshContextPerSecond), figure(code.freshContextOverProcess)],
        ['one compiled function again', figure(code.compiledAgainPerSecond), figure(code.compiledAgainOverProcess)],
        ['a process for each call', figure(code.processPerSecond, 1), '1'],
      ],
    ),
    table(
      ['after the attack', 'next task ms'],
      recovery.map(({ attack, nextTaskMs }) => [attack, figure(nextTaskMs)]),
    ),
  ].join('\n\n');
  const summary = { machine: examine(), results: [], resets, calls: [call], code, recovery };
  return { summary, text, interrupted: signal.aborted };
}
