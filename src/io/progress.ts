/** @module How a run shows its progress: a bar that redraws itself on a terminal, one plain line a step anywhere else. */
import type { Progress, Reporter } from '../train/reporter.ts';

/** The part of a stream that is used, so that a test can pass its own. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** A phase other than this one is not told step by step in plain lines: ten lines are enough. */
const STEPWISE = 'train';
const BAR = 20;
const CLEAR_LINE = '\r\x1b[2K';

export interface OutputReporter extends Reporter {
  /** Leaves the bar, if one is drawn, so that what follows begins on a line of its own; none is drawn from then on. */
  end(): void;
}

export function reporterTo(output: Output, options: { readonly dumb?: boolean } = {}): OutputReporter {
  return output.isTTY === true && options.dumb !== true ? terminalReporter(output) : plainReporter(output);
}

function plainReporter(output: Output): OutputReporter {
  return {
    note: (text) => output.write(`${text}\n`),
    progress: (progress) => {
      const { phase, done, total } = progress;
      const tenth = (n: number) => Math.floor((n * 10) / total);
      if (phase === STEPWISE || tenth(done) > tenth(done - 1)) output.write(`${line(progress)}\n`);
    },
    end: () => undefined,
  };
}

function terminalReporter(output: Output): OutputReporter {
  let drawn = '';
  let ended = false;
  return {
    note: (text) => {
      output.write(drawn === '' ? `${text}\n` : `${CLEAR_LINE}${text}\n${drawn}`);
    },
    progress: (progress) => {
      if (ended) return;
      const finished = progress.done >= progress.total;
      drawn = `${bar(progress)} ${line(progress)}`.slice(0, (output.columns ?? 80) - 1);
      output.write(`${CLEAR_LINE}${drawn}${finished ? '\n' : ''}`);
      if (finished) drawn = '';
    },
    end: () => {
      if (drawn !== '') output.write('\n');
      drawn = '';
      ended = true;
    },
  };
}

function bar({ done, total }: Progress): string {
  const full = total > 0 ? Math.min(BAR, Math.floor((done / total) * BAR)) : BAR;
  return `[${'#'.repeat(full)}${'.'.repeat(BAR - full)}]`;
}

function line({ phase, done, total, figures }: Progress): string {
  return [
    `${phase} ${done}/${total}`,
    ...Object.entries(figures).map(([name, x]) => `${name} ${typeof x === 'string' ? x : figure(x)}`),
  ].join('  ');
}

/** Three decimals, fewer for large figures and an exponent for small ones. */
export function figure(x: number): string {
  const size = Math.abs(x);
  if (size >= 100) return String(Math.round(x));
  return size === 0 || size >= 0.001 || Number.isNaN(x) ? x.toFixed(3) : x.toExponential(1);
}
