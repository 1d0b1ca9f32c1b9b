/** Programs for the sandbox's tests: what `bundle` would make of a module with this default export. */

import type { ResetLevel } from '../../../src/env/environment.ts';
import { WorldHost, type WorldOutcome } from '../../../src/env/sandbox/world-host.ts';

export const LEVELS: readonly ResetLevel[] = ['state', 'context', 'isolate'];

export function program(defaultExport: string): string {
  return `() => { 'use strict'; return (${defaultExport}); }`;
}

/** A world whose tools are these functions' source texts, e.g. `{ echo: '(args) => args.text' }`. */
export function world(tools: Readonly<Record<string, string>>): string {
  const members = Object.entries(tools).map(([name, source]) => `${JSON.stringify(name)}: ${source}`);
  return program(`({ public: given, random }) => ({ tools: { ${members.join(', ')} } })`);
}

export function hostOf(script: string, reset: ResetLevel = 'context', openTimeoutMs = 5000): WorldHost {
  return new WorldHost({ script, reset, memoryMiB: 32, openTimeoutMs });
}

/** What one body of code, run as a tool in a world of its own, comes to. */
export function outcomeOf(body: string, timeoutMs = 5000): WorldOutcome {
  const host = hostOf(world({ body: `() => { ${body} }` }));
  try {
    return host.open('null', 'seed').call('body', '{}', timeoutMs);
  } finally {
    host.dispose();
  }
}
