/** @module Ctrl-C: the first press asks the run to stop where it can be resumed, the second ends the process. */

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export interface Interruptible {
  readonly signal: AbortSignal;
  /** Gives the signals back. */
  release(): void;
}

/**
 * `onFirst` is called at the first signal, before the abort. From then on the operating system's own handling is back in force:
 * a second signal ends the process at once (130, as shells report it), even where an isolate hangs and `process.exit` would wait for it.
 */
export function interruptible(onFirst: () => void): Interruptible {
  const controller = new AbortController();
  const release = () => {
    for (const name of SIGNALS) process.off(name, handle);
  };
  const handle = () => {
    release();
    onFirst();
    controller.abort();
  };
  for (const name of SIGNALS) process.on(name, handle);
  return { signal: controller.signal, release };
}
