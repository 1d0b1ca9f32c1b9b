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
const LINE_UP = '\x1b[1A';

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
      if (phase === STEPWISE || tenth(done) > tenth(done - 1))
        output.write(`${[place(progress), ...shown(progress)].join('  ')}\n`);
    },
    end: () => undefined,
  };
}

function terminalReporter(output: Output): OutputReporter {
  let drawn: readonly string[] = [];
  let ended = false;
  const clear = () => CLEAR_LINE + `${LINE_UP}${CLEAR_LINE}`.repeat(Math.max(0, drawn.length - 1));
  return {
    note: (text) => {
      output.write(drawn.length === 0 ? `${text}\n` : `${clear()}${text}\n${drawn.join('\n')}`);
    },
    progress: (progress) => {
      if (ended) return;
      const finished = progress.done >= progress.total;
      const lines = wrapped([`${bar(progress)} ${place(progress)}`, ...shown(progress)], (output.columns ?? 80) - 1);
      output.write(`${clear()}${lines.join('\n')}${finished ? '\n' : ''}`);
      drawn = finished ? [] : lines;
    },
    end: () => {
      if (drawn.length > 0) output.write('\n');
      drawn = [];
      ended = true;
    },
  };
}

/** As many to a line as fit: a narrow terminal shows no less. What is longer than a line is cut, as a terminal would wrap it. */
function wrapped(parts: readonly string[], columns: number): readonly string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const longer = `${lines.at(-1)}  ${part}`;
    if (lines.length > 0 && longer.length <= columns) lines[lines.length - 1] = longer;
    else lines.push(part.slice(0, columns));
  }
  return lines;
}

function bar({ done, total }: Progress): string {
  const full = total > 0 ? Math.min(BAR, Math.floor((done / total) * BAR)) : BAR;
  return `[${'#'.repeat(full)}${'.'.repeat(BAR - full)}]`;
}

function place({ phase, done, total }: Progress): string {
  return `${phase} ${done}/${total}`;
}

function shown({ figures }: Progress): readonly string[] {
  return Object.entries(figures).map(([name, x]) => `${name} ${typeof x === 'string' ? x : figure(x)}`);
}

/** Three decimals, fewer for large figures and an exponent for small ones. */
export function figure(x: number): string {
  const size = Math.abs(x);
  if (size >= 100) return String(Math.round(x));
  return size === 0 || size >= 0.001 || Number.isNaN(x) ? x.toFixed(3) : x.toExponential(1);
}
