import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SETUP_FORMAT } from '../../src/policy/backends/addon.ts';
import { nvidiaDriver } from '../../src/policy/backends/gpu.ts';
import { older } from '../../src/setup/checks.ts';
import { proveSetup } from '../../src/setup/prove.ts';
import { isNeeded, type SetupKind, totalBytes, WHEELS } from '../../src/setup/wheels.ts';
import { BIN } from '../cli/isogym.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'isogym-setup-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function setup(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, 'setup', ...args], {
    encoding: 'utf8',
    input: '',
    env: { ...process.env, npm_command: 'exec', ISOGYM_HOME: folder, ...env },
  });
  return { code: status, stdout, stderr };
}

test('says what it would fetch, how large it is and where it goes, and fetches nothing unasked', () => {
  const ran = setup(['native']);
  expect(ran.stdout).toBe(
    `TensorFlow 2.21.0: fetches 0.3 GB through pip, keeps 0.9 GB into ${folder}/tensorflow/native, and nowhere else\n`,
  );
  expect(ran.stderr).toBe('error: expected somebody to ask, found no terminal\nhint: npx isogym setup native --yes\n');
  expect(ran.code).toBe(2);
  expect(readdirSync(folder)).toEqual([]);
});

test('each missing thing is one line and one command, before anything is fetched', () => {
  const ran = setup(['native', '--yes'], { CXX: 'no-such-compiler', PATH: folder });
  expect(ran.stderr).toBe(
    [
      'error:',
      'no C++ compiler: no-such-compiler does not run',
      'pip does not run',
      'hint: sudo apt-get install -y g++',
      '      sudo apt-get install -y python3-pip\n',
    ].join('\n'),
  );
  expect(ran.code).toBe(1);
});

test('a wheel with another hash is not unpacked, and nothing is left behind', () => {
  const wheels = join(folder, 'wheels');
  mkdirSync(wheels);
  writeFileSync(join(wheels, 'tensorflow_cpu-2.21.0-cp311-cp311-any.whl'), 'something else');
  const ran = setup(['native', '--yes', '--json', '--wheels', wheels]);
  expect(JSON.parse(ran.stdout).error).toMatchObject({ code: 'BAD_WHEEL' });
  expect(readdirSync(join(folder, 'tensorflow'))).toEqual([]);
});

test.each([
  ['ERROR: No matching distribution found', /^Is the package index reachable.* tensorflow-cpu==2\.21\.0$/s],
  ['OSError: [Errno 28] No space left on device', /^ISOGYM_HOME names another folder/],
])('a download that fails with %s leaves nothing behind, and the hint is what helps then', (said, hint) => {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  // Says where pip would leave what is half fetched, and leaves some of it there.
  const pip = `#!/bin/sh\n[ "$3" = --version ] && exit 0\ntouch "$TMPDIR/half"\necho "below $TMPDIR" >&2\necho '${said}' >&2\nexit 1\n`;
  writeFileSync(join(bin, 'python3'), pip);
  chmodSync(join(bin, 'python3'), 0o755);
  const ran = setup(['native', '--yes', '--json'], { PATH: `${bin}:${process.env.PATH}` });
  const message = expect.stringMatching(new RegExp(`below ${folder}/tensorflow/native\\.partial-\\d+/inbox\n`));
  expect(JSON.parse(ran.stdout).error).toEqual({
    code: 'DOWNLOAD_FAILED',
    message,
    hint: expect.stringMatching(hint),
  });
  expect(readdirSync(join(folder, 'tensorflow'))).toEqual([]);
});

test('a proof that is interrupted ends as such, and not as an addon that does not work', async () => {
  const ended = proveSetup('native', folder, AbortSignal.timeout(50));
  await expect(ended).rejects.toMatchObject({ name: 'TimeoutError' });
});

test('a folder without the wheel, or without a TensorFlow, is named', () => {
  expect(setup(['native', '--yes', '--wheels', folder])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /expected a file tensorflow_cpu-2.21.0-….whl, found none\nhint: python3 -m pip download .* tensorflow-cpu==2.21.0\n$/,
    ),
  });
  expect(setup(['native', '--yes', '--tensorflow', folder])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expected include/tensorflow/c/c_api.h'),
  });
});

test('what cannot be read or made is told at its path, with what to do', () => {
  const nowhere = join(folder, 'nowhere');
  const file = join(folder, 'file');
  writeFileSync(file, '');
  for (const [args, home, code, path] of [
    [['--wheels', nowhere], folder, 'NO_WHEEL', nowhere],
    [['--wheels', file], folder, 'NO_WHEEL', file],
    [['--wheels', folder], join(file, 'x'), 'SETUP_FOLDER', file],
    // Where Node's own recursive mkdir goes round for ever.
    ...(process.platform === 'linux' ? [[['--wheels', folder], '/proc/x', 'SETUP_FOLDER', '/proc/x'] as const] : []),
  ] as const) {
    const { code: exit, stdout } = setup(['native', '--yes', '--json', ...args], { ISOGYM_HOME: home });
    expect(exit).toBe(2);
    expect(JSON.parse(stdout).error).toEqual({
      code,
      message: expect.stringContaining(path),
      hint: expect.not.stringContaining('ISOGYM_DEBUG'),
    });
  }
});

test('a setup whose record is damaged is none: doctor goes on, and setting up replaces it', () => {
  const native = join(folder, 'tensorflow', 'native');
  mkdirSync(native, { recursive: true });
  writeFileSync(join(native, 'setup.json'), '{torn');
  const doctor = () =>
    spawnSync(process.execPath, [BIN, 'doctor', '--json'], {
      encoding: 'utf8',
      env: { ...process.env, ISOGYM_HOME: folder },
    });
  expect(JSON.parse(doctor().stdout)).toMatchObject({ setups: [] });
});

describe('what was set up before', () => {
  /** A record without what it tells of. */
  function record(kind: SetupKind, from: string): void {
    const wheels =
      from === 'pip' ? WHEELS[kind].map(({ project, version, sha256 }) => ({ project, version, sha256 })) : [];
    const manifest = {
      format: SETUP_FORMAT,
      kind,
      tensorflow: '2.21.0',
      from,
      wheels,
      addon: 'a',
      compiler: 'g++',
      device: 'CPU',
    };
    mkdirSync(join(folder, 'tensorflow', kind), { recursive: true });
    writeFileSync(
      join(folder, 'tensorflow', kind, 'setup.json'),
      JSON.stringify({ ...manifest, memoryMiB: null, bytes: 1 }),
    );
  }

  test.each([['pip'], ['/somewhere/else']])(
    'and no longer works is told with how to make it anew (from %s)',
    (from) => {
      record('native', from);
      const ran = setup(['native', '--json']);
      expect(JSON.parse(ran.stdout).error).toEqual({
        code: 'PROOF_FAILED',
        message: expect.stringContaining(`the addon in ${folder}/tensorflow/native does not work: `),
        hint: expect.stringMatching(/: npx isogym setup native --remove && npx isogym setup native$/),
      });
      expect(readdirSync(join(folder, 'tensorflow'))).toEqual(['native']);
    },
  );

  test.skipIf(nvidiaDriver() !== undefined)('without a GPU still has none: one line, and the command', () => {
    record('cuda', 'pip');
    expect(JSON.parse(setup(['cuda', '--json']).stdout).error).toMatchObject({
      code: 'SETUP_UNFIT',
      message: 'the kernel has no NVIDIA driver, so there is no GPU to use',
    });
  });
});

test('removing what is not there says so', () => {
  expect(JSON.parse(setup(['cuda', '--remove', '--json'], { ISOGYM_HOME: '/dev/null/x' }).stdout)).toMatchObject({
    removed: false,
  });
  expect(JSON.parse(setup(['cuda', '--remove', '--json']).stdout)).toEqual({ kind: 'cuda', removed: false });
});

test('of a wheel only libraries, the headers that are compiled against and the compiler of XLA are kept', () => {
  const kept = [
    'tensorflow/libtensorflow_cc.so.2',
    'tensorflow/include/tensorflow/c/eager/c_api.h',
    'nvidia/cudnn/lib/libcudnn_ops.so.9',
    'nvidia/cuda_nvcc/bin/ptxas',
    'nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc',
  ];
  const left = [
    'tensorflow/python/pywrap.so',
    'tensorflow/include/Eigen/Core',
    'nvidia/cudnn/include/cudnn.h',
    'nvidia/__init__.py',
    'tensorflow-2.21.0.dist-info/METADATA',
  ];
  expect([...kept, ...left].filter(isNeeded)).toEqual(kept);
  expect(totalBytes(WHEELS.cuda)).toBeGreaterThan(3e9);
});

describe('the driver', () => {
  test('is read from the kernel: version and models', () => {
    mkdirSync(join(folder, 'gpus', '0000:00:04.0'), { recursive: true });
    writeFileSync(
      join(folder, 'version'),
      'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\nGCC version:  gcc 12.2.0\n',
    );
    writeFileSync(join(folder, 'gpus', '0000:00:04.0', 'information'), 'Model: \t\t NVIDIA H200\nIRQ:   24\n');
    expect(nvidiaDriver(folder)).toEqual({ version: '570.124.06', gpus: ['NVIDIA H200'] });
    expect(nvidiaDriver(join(folder, 'nowhere'))).toBeUndefined();
  });

  test('versions are compared part by part', () => {
    expect(older('470.82.01', '525.60.13')).toBe(true);
    expect(older('525.60.13', '525.60.13')).toBe(false);
    expect(older('525.105.17', '525.60.13')).toBe(false);
    expect(older('unknown', '525.60.13')).toBe(false);
  });
});
