import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { BIN, isogym } from './isogym.ts';

/** A run of no iterations. */
const SMALL = ['--config', 'toy-lookup-tabular.yaml', 'iterations=0', 'tasks.train=20', 'tasks.heldOut=4', 'workers=1'];

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'isogym-cli-'));
});
afterAll(() => rmSync(cwd, { recursive: true }));

test('the help of isogym', () => {
  const { code, stdout } = isogym(cwd, '--help');
  expect(code).toBe(0);
  expect(stdout).toMatchInlineSnapshot(`
    "Usage: isogym [options] [command]

    Trains tool-using agents with reinforcement learning.

    Options:
      --version                                     print the version
      --help                                        print this help

    Commands:
      train [options] [overrides...]                Train a policy as a config says.
      eval [options] <run>                          Evaluate a run's latest checkpoint on the held-out tasks.
      show [options] <run>                          Print episodes of a run, the latest unless asked otherwise.
      replay [options] <run>                        Execute recorded actions again in fresh worlds, and compare hash by hash.
      init                                          Begin something of your own.
      check [options] <environment> [overrides...]  Try an environment of your own: one line for each check, with what was seen.
      setup                                         Set up a faster tensor backend: native (CPU) or cuda (NVIDIA GPU).
      doctor [options]                              Say what this machine has, and which tensor backends work on it.
      exercise                                      Run an exercise, and set what is seen beside what is expected.
      bench                                         Measure what this machine does.
      help [command]                                display help for command

    Exit codes: 0 done, 1 failed, 2 wrong input, 130 interrupted.
    "
  `);
});

test('the help of each command', () => {
  const commands = [['train'], ['eval'], ['show'], ['check'], ['doctor'], ['exercise'], ['exercise', 'step-penalty']];
  expect(commands.map((command) => isogym(cwd, ...command, '--help').stdout).join('----\n')).toMatchInlineSnapshot(`
    "Usage: isogym train [options] [overrides...]

    Train a policy as a config says.

    Arguments:
      overrides        key.path=value, in place of what the config says

    Options:
      --config <file>  a YAML file; a bare name is looked for here, then among
                       isogym's own configs
      --resume <run>   go on with a run that was stopped: its folder, or its name in
                       runs/
      --eager          run operation by operation, with no recorded graph: short for
                       replay=false
      --dry-run        print the config with every default filled in, and stop
      --json           print one JSON object on stdout, and progress on stderr
      --help           print this help
    ----
    Usage: isogym eval [options] <run>

    Evaluate a run's latest checkpoint on the held-out tasks.

    Arguments:
      run     the run's folder, or its name in runs/

    Options:
      --json  print one JSON object on stdout, and progress on stderr
      --help  print this help
    ----
    Usage: isogym show [options] <run>

    Print episodes of a run, the latest unless asked otherwise.

    Arguments:
      run             the run's folder, or its name in runs/

    Options:
      --failed        only those without success
      --truncated     only those that a limit ended
      --task <id>     only those of one task
      --episode <id>  only the one of this id
      --best <n>      the n with the highest return
      --worst <n>     the n with the lowest return
      --limit <n>     at most n (default: 5)
      --json          print one JSON object on stdout, and progress on stderr
      --help          print this help
    ----
    Usage: isogym check [options] <environment> [overrides...]

    Try an environment of your own: one line for each check, with what was seen.

    Arguments:
      environment          a built-in name, or a path to a module
      overrides            key=value, the environment's options

    Options:
      --verifier <module>  a verifier that judges: a built-in name, or a path to a
                           module
      --json               print one JSON object on stdout, and progress on stderr
      --help               print this help
    ----
    Usage: isogym doctor [options]

    Say what this machine has, and which tensor backends work on it.

    Options:
      --json  print one JSON object on stdout, and progress on stderr
      --help  print this help
    ----
    Usage: isogym exercise [options] [command]

    Run an exercise, and set what is seen beside what is expected.

    Options:
      --help                  print this help

    Commands:
      step-penalty [options]  What a penalty per step makes of toy-lookup: the exact
                              optimum, and what is learnt from scratch.
      help [command]          display help for command
    ----
    Usage: isogym exercise step-penalty [options]

    What a penalty per step makes of toy-lookup: the exact optimum, and what is
    learnt from scratch.

    Options:
      --json  print one JSON object on stdout, and progress on stderr
      --help  print this help
    "
  `);
});

test('wrong input is told with the nearest right one, and ends with code 2', () => {
  const wrong = [
    [],
    ['trian'],
    ['train'],
    ['train', '--confg', 'x'],
    ['train', '--config', 'toy-lokup.yaml'],
    ['train', '--config', 'toy-lookup.yaml', '--resume', 'x'],
    ['train', '--config', 'toy-lookup.yaml', '--config', 'x.yaml'],
    ['train', '--config', ''],
    ['train', '--seed=1'],
    ['train', 'toy-lookup-tabular.yaml'],
    ['train', '--resume', 'nowhere'],
    ['help', 'trian'],
    ['eval'],
    ['eval', 'a', 'b'],
    ['show', 'nowhere', '--best', '0'],
    ['show', 'nowhere', '--best', '1', '--worst', '1'],
    ['exercise', 'step-penalti'],
    ['exercise'],
    ['setup'],
  ];
  const seen = wrong.map((args) => {
    const { code, stdout, stderr } = isogym(cwd, ...args);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    const error = stderr.slice(stderr.indexOf('error: ')).trimEnd();
    return `${['isogym', ...args].join(' ')}\n${error}`;
  });
  expect(seen.join('\n\n')).toMatchInlineSnapshot(`
    "isogym
    error: expected a command, found none
    hint: npx isogym --help

    isogym trian
    error: unknown command 'trian' (Did you mean train?)
    hint: npx isogym --help, or npx isogym COMMAND --help

    isogym train
    error: expected --config FILE or --resume RUN, found neither
    hint: npx isogym train --config toy-lookup.yaml

    isogym train --confg x
    error: unknown option '--confg' (Did you mean --config?)
    hint: npx isogym --help, or npx isogym COMMAND --help

    isogym train --config toy-lokup.yaml
    error: expected a config file, found nothing at toy-lokup.yaml (did you mean toy-lookup.yaml?)
    hint: Configs that come with isogym: js-puzzles.yaml, toy-lookup-reinforce.yaml, toy-lookup-tabular.yaml, toy-lookup.yaml

    isogym train --config toy-lookup.yaml --resume x
    error: expected --config or --resume, found both
    hint: A resumed run takes the config in its folder.

    isogym train --config toy-lookup.yaml --config x.yaml
    error: option '--config <file>' argument 'x.yaml' is invalid. Expected this option once, found it again.
    hint: npx isogym --help, or npx isogym COMMAND --help

    isogym train --config 
    error: option '--config <file>' argument '' is invalid. Expected some text.
    hint: npx isogym --help, or npx isogym COMMAND --help

    isogym train --seed=1
    error: unknown option '--seed=1'
    hint: A key of the config is told without dashes: npx isogym train --config FILE seed=1

    isogym train toy-lookup-tabular.yaml
    error: expected --config FILE or --resume RUN, found neither
    hint: npx isogym train --config toy-lookup-tabular.yaml

    isogym train --resume nowhere
    error: expected the folder of a run, found no manifest.json in nowhere
    hint: A run is named by its folder, as in \`npx isogym show runs/toy-lookup\`.

    isogym help trian
    error: expected a command, found "trian" (did you mean train?)
    hint: npx isogym --help

    isogym eval
    error: missing required argument 'run'
    hint: npx isogym --help, or npx isogym COMMAND --help

    isogym eval a b
    error: too many arguments for 'eval'. Expected 1 argument but got 2: a, b.
    hint: npx isogym --help, or npx isogym COMMAND --help

    isogym show nowhere --best 0
    error: option '--best <n>' argument '0' is invalid. Expected a whole number of at least 1.
    hint: npx isogym --help, or npx isogym COMMAND --help

    isogym show nowhere --best 1 --worst 1
    error: expected one of --best, --worst and --limit, found more
    hint: npx isogym show RUN --best 3

    isogym exercise step-penalti
    error: unknown command 'step-penalti' (Did you mean step-penalty?)
    hint: npx isogym --help, or npx isogym COMMAND --help

    isogym exercise
    error: expected a command of exercise (step-penalty), found none
    hint: npx isogym exercise --help

    isogym setup
    error: expected a command of setup (native, cuda), found none
    hint: npx isogym setup --help"
  `);
});

test('with --json a failure is one object on stdout, whatever went wrong', () => {
  for (const args of [
    ['trian'],
    ['train'],
    ['train', '--confg'],
    ['train', '--config', 'nowhere.yaml'],
    ['eval', 'nowhere'],
    ['show', 'nowhere'],
    ['exercise'],
    ['bench', 'trian'],
    [],
  ]) {
    const { code, stdout } = isogym(cwd, ...args, '--json');
    expect(code).toBe(2);
    expect(stdout.trimEnd().split('\n')).toHaveLength(1);
    expect(JSON.parse(stdout)).toEqual({
      error: { code: expect.stringMatching(/^[A-Z_]+$/), message: expect.any(String), hint: expect.any(String) },
    });
  }
});

test('--json may stand before the command too', () => {
  for (const args of [
    ['--json', 'show', 'nowhere'],
    ['--json', 'exercise', 'step-penalti'],
    ['exercise', '--json', 'step-penalty', 'x'],
  ]) {
    const { code, stdout } = isogym(cwd, ...args);
    expect(code).toBe(2);
    expect(JSON.parse(stdout).error.message).not.toContain('--json');
  }
});

test('with --json help and version are one object too', () => {
  for (const args of [['--help'], ['--version'], ['train', '--help'], ['help', 'show']]) {
    const { code, stdout, stderr } = isogym(cwd, ...args, '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ text: expect.stringMatching(/\S/) });
    expect(stderr).toBe('');
  }
});

test('nothing that was typed moves the cursor, colours the terminal or fills the screen', () => {
  const evil = '\u001b[2J\u009b31m\u202e';
  for (const args of [
    [evil],
    ['train', '--config', evil],
    ['show', evil],
    ['train', '--config', 'toy-lookup.yaml', `${evil}=1`],
  ]) {
    const { code, stderr } = isogym(cwd, ...args);
    expect(code).toBe(2);
    expect(stderr).toContain('\\u001b[2J');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    expect(stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  }
  expect(isogym(cwd, 'show', 'x'.repeat(100_000)).stderr.length).toBeLessThan(5000);
});

test('an error of the operating system names the path and what to do', () => {
  const { code, stdout } = isogym(cwd, 'train', ...SMALL, 'runs.dir=/dev/null/x', '--json');
  expect(code).toBe(1);
  expect(JSON.parse(stdout).error).toEqual({
    code: expect.not.stringContaining('INTERNAL'),
    message: expect.stringContaining('/dev/null/x'),
    hint: expect.any(String),
  });
});

test.skipIf(process.platform === 'win32')('a working folder that was removed is told, by every command', () => {
  const gone = join(cwd, 'gone');
  const script = `mkdir "${gone}"; cd "${gone}"; rmdir "${gone}"; "${process.execPath}" "${BIN}" "$@"`;
  for (const args of [['show', 'x'], ['train', ...SMALL], ['trian']]) {
    const { status, stderr } = spawnSync('sh', ['-c', script, 'sh', ...args], { encoding: 'utf8' });
    expect(status).toBe(args[0] === 'trian' ? 2 : 1);
    expect(stderr).toMatch(/^error: .*\nhint: /);
    expect(stderr).not.toContain('    at ');
  }
});

describe('a module of the config', () => {
  function trainWith(top: string) {
    const module = join(cwd, 'environment.ts');
    const toy = new URL('../../src/env/toy-lookup/index.ts', import.meta.url).href;
    writeFileSync(module, `import toy from '${toy}';\n${top}\nexport default toy;\n`);
    return isogym(cwd, 'train', ...SMALL, `environment.module=${module}`, `runs.dir=${join(cwd, 'runs')}`, '--json');
  }

  test('that prints does so beside the one JSON object, on stderr', () => {
    const { code, stdout, stderr } = trainWith("console.log('hello'); process.stdout.write('there');");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toHaveProperty('policies');
    expect(stderr).toContain('hello');
  });

  test.each(['process.exit(0);', 'await new Promise(() => {});', 'process.exit(3);'])(
    'that ends the process is a failure, not a command that is done: %s',
    (top) => {
      const { code, stdout } = trainWith(top);
      expect(code).toBe(1);
      expect(JSON.parse(stdout).error.code).toBe('ENDED_EARLY');
    },
  );
});

test.skipIf(!existsSync('/dev/full'))('output that cannot be written does not end a run, but fails the command', () => {
  const full = openSync('/dev/full', 'w');
  const runs = join(cwd, 'full');
  for (const stdio of [
    ['ignore', full, 'pipe'],
    ['ignore', 'pipe', full],
  ] as const) {
    rmSync(runs, { recursive: true, force: true });
    const args = [BIN, 'train', ...SMALL, `runs.dir=${runs}`, '--json'];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd, encoding: 'utf8', stdio: [...stdio] });
    expect(status).toBe(1);
    if (stderr !== null) expect(stderr).toContain('error: expected stdout to take what is printed');
    expect(existsSync(join(runs, 'toy-lookup-tabular', 'summary.json'))).toBe(true);
  }
  closeSync(full);
});

test('every mistake of a config and of the arguments is printed, without a stack', () => {
  writeFileSync(join(cwd, 'bad.yaml'), 'iterations: 1\nseed: x\ngruop: { size: 2 }\n');
  const { code, stderr } = isogym(cwd, 'train', '--config', 'bad.yaml', 'backend=cude', '--dry-run');
  expect(code).toBe(2);
  expect(stderr).toMatchInlineSnapshot(`
    "error:
    bad.yaml:1:1 environment: expected a section of keys, found nothing
    bad.yaml:1:1 verifier: expected a section of keys, found nothing
    bad.yaml:1:1 policy: expected a section of keys, found nothing
    bad.yaml:1:1 batch: expected a section of keys, found nothing
    bad.yaml:1:1 group: expected a section of keys, found nothing
    bad.yaml:1:1 optimizer: expected a section of keys, found nothing
    bad.yaml:2:7 seed: expected a whole number of at least 0, found "x"
    bad.yaml:3:1 gruop: expected a known key, found gruop (did you mean group?)
    argument 1 backend: expected one of auto, cuda, native, webgpu, wasm, cpu, found "cude" (did you mean cuda?)
    hint: Every key is described in docs/configuration.md.
    "
  `);
});

test('--eager is replay=false, and said as such', () => {
  const { stdout } = isogym(cwd, 'train', '--config', 'toy-lookup.yaml', '--eager', '--dry-run', '--json');
  expect(JSON.parse(stdout)).toMatchObject({ config: { replay: false }, source: { overrides: ['replay=false'] } });
});

test('--dry-run prints a config that gives itself again, and makes no run', () => {
  const { code, stdout } = isogym(cwd, 'train', '--config', 'toy-lookup.yaml', 'seed=3', '--dry-run');
  expect(code).toBe(0);
  expect(parse(stdout)).toMatchObject({ name: 'toy-lookup', seed: 3, algorithm: { estimator: 'grpo', gamma: 1 } });
  writeFileSync(join(cwd, 'again.yaml'), stdout);
  expect(isogym(cwd, 'train', '--config', 'again.yaml', '--dry-run').stdout).toBe(stdout);
  const json = JSON.parse(isogym(cwd, 'train', '--config', 'toy-lookup.yaml', 'seed=3', '--dry-run', '--json').stdout);
  expect(json.config).toEqual(parse(stdout));
  expect(json.source.overrides).toEqual(['seed=3']);
});

test('the version is that of package.json', () => {
  expect(isogym(cwd, '--version')).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
});

test('doctor says what the machine has and why each backend does not work', () => {
  const { code, stdout } = isogym(cwd, 'doctor', '--json');
  expect(code).toBe(0);
  const seen = JSON.parse(stdout);
  expect(seen).toMatchObject({
    node: process.versions.node,
    v8: process.versions.v8,
    isolatedVm: expect.stringMatching(/^\d/),
  });
  expect(seen.backends.map((b: { backend: string }) => b.backend)).toEqual(['cuda', 'native', 'webgpu', 'wasm', 'cpu']);
  for (const { works, reason, device } of seen.backends) {
    expect(works ? device : reason).toEqual(expect.any(String));
    expect(works ? reason : device).toBeNull();
  }
  expect(seen.auto).toBe(seen.backends.find((b: { works: boolean }) => b.works).backend);
});

test('starting up loads no tensor library and no isolate', () => {
  const program = new URL('../../src/cli/program.ts', import.meta.url).href;
  const script = `
    import { createRequire } from 'node:module';
    const { program } = await import(${JSON.stringify(program)});
    program();
    console.log(Object.keys(createRequire(import.meta.url).cache).join('\\n'));`;
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  expect(status).toBe(0);
  expect(stdout).not.toMatch(/tfjs|isolated-vm/);
});

test('a Node that is too old is told in one line what to do', () => {
  const old = "data:text/javascript,Object.defineProperty(process.versions, 'node', { value: '20.20.2' })";
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['--import', old, BIN, 'doctor', ...args], { encoding: 'utf8' });
  const { status, stdout, stderr } = run();
  expect(status).toBe(1);
  expect(stdout).toBe('');
  expect(JSON.parse(run('--json').stdout).error.code).toBe('NODE_TOO_OLD');
  expect(stderr).toMatchInlineSnapshot(`
    "isogym needs Node 22.18 or later, this is Node 20.20.2: run \`npm ci\`, then \`npx isogym ...\` or \`npm run isogym -- ...\`, which use the Node that npm installed here.
    "
  `);
});
