/** @module Compiles the published C++ of tfjs-node against a TensorFlow: two files, one call of the compiler, no build system. */
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { addonIn } from '../policy/backends/addon.ts';
import { inputError } from '../records/errors.ts';
import type { Tools } from './checks.ts';
import { runProgram } from './fetch.ts';

export interface Library {
  readonly include: string;
  /** The two files that are linked. */
  readonly files: readonly string[];
}

/** The wheel's layout (`libtensorflow_cc.so.2`, `include/`), or that of the C library's archive (`lib/libtensorflow.so`). @throws NO_TENSORFLOW */
export function libraryIn(folder: string): Library {
  const layouts = [
    ['libtensorflow_cc.so.2', 'libtensorflow_framework.so.2'],
    ['lib/libtensorflow.so', 'lib/libtensorflow_framework.so'],
    ['lib/libtensorflow.so.2', 'lib/libtensorflow_framework.so.2'],
  ];
  const include = join(folder, 'include');
  const files = layouts.map((names) => names.map((name) => join(folder, name))).find((all) => all.every(existsSync));
  if (files === undefined || !existsSync(join(include, 'tensorflow', 'c', 'c_api.h'))) {
    throw inputError(
      'NO_TENSORFLOW',
      `${folder}: expected include/tensorflow/c/c_api.h and libtensorflow_cc.so.2 (a wheel's folder tensorflow) or lib/libtensorflow.so, found neither`,
    );
  }
  return { include, files };
}

/**
 * Builds the addon into `folder`. Node's N-API is the same for every Node, so one build serves all.
 * @param inside whether the library lies in `folder` itself, which may be renamed: it is then found by a relative path
 */
export async function buildAddon(
  tools: Tools,
  library: Library,
  folder: string,
  inside: boolean,
  signal: AbortSignal,
): Promise<void> {
  const output = addonIn(folder);
  mkdirSync(dirname(output), { recursive: true });
  const [first = ''] = library.files;
  const runPath = inside ? '$ORIGIN/../tensorflow' : dirname(realpathSync(first));
  const sources = ['tfjs_backend.cc', 'tfjs_binding.cc'].map((file) => join(tools.addon, 'binding', file));
  await runProgram(
    tools.compiler,
    [
      ...['-shared', '-fPIC', '-std=c++17', '-O2', '-DNAPI_VERSION=8'],
      ...[tools.addon, tools.headers, library.include].map((path) => `-I${path}`),
      ...[...sources, ...library.files, '-o', output, `-Wl,-rpath,${runPath}`],
    ],
    { code: 'BUILD_FAILED', hint: 'ISOGYM_DEBUG=1 shows more; CXX names another compiler.', signal },
  );
}
