/** @module An author's function outside the isolates, with a bound on its time: one that never comes back is told, and hangs nobody. */
import { createContext, Script } from 'node:vm';
import { IsogymError } from '../records/errors.ts';

/** What the script's one call leads to: set for each run. Nested runs give it back. */
const open: { make: () => void } = { make: () => undefined };
const context = createContext({ make: () => open.make() });
const script = new Script('make()');

/**
 * What `make` returns or throws. It runs in this thread with all that it can see; V8 ends it where it takes longer. Costs some
 * 0.3 ms, for a watchdog thread: for many calls at once where there are many.
 * @throws TOO_SLOW after `timeoutMs`
 */
export function bounded<T>(make: () => T, timeoutMs: number): T {
  const out: { value?: T } = {};
  const outer = open.make;
  open.make = () => {
    out.value = make();
  };
  try {
    script.runInContext(context, { timeout: timeoutMs });
  } catch (error) {
    // Made in the other context, so no `instanceof` knows it.
    if ((error as { code?: unknown } | null)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new IsogymError('TOO_SLOW', `expected an end within ${timeoutMs} ms, found none`, { cause: error });
  } finally {
    open.make = outer;
  }
  return out.value as T;
}
