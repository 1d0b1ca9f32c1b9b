import { expect, test } from 'vitest';
import { figure, reporterTo } from '../../src/io/progress.ts';

function output(options: { isTTY?: boolean; columns?: number } = {}) {
  let text = '';
  return { ...options, write: (part: string) => (text += part), text: () => text };
}
const step = (done: number, total = 4, phase = 'train') => ({
  phase,
  done,
  total,
  figures: { reward: done / 8, 'rollouts/s': 812.4 },
});

test('without a terminal every step is one plain line', () => {
  const out = output();
  const reporter = reporterTo(out);
  reporter.note('backend wasm');
  reporter.progress(step(1));
  reporter.progress(step(2));
  reporter.end();
  expect(out.text()).toMatchInlineSnapshot(`
    "backend wasm
    train 1/4  reward 0.125  rollouts/s 812
    train 2/4  reward 0.250  rollouts/s 812
    "
  `);
});

test('without a terminal a phase of many small steps is told in ten lines', () => {
  const out = output();
  const reporter = reporterTo(out);
  for (let done = 1; done <= 500; done++) reporter.progress(step(done, 500, 'warm-start'));
  const lines = out.text().trimEnd().split('\n');
  expect(lines).toHaveLength(10);
  expect(lines.at(-1)).toContain('warm-start 500/500');
});

test('on a terminal the bar redraws itself, a note goes above it, and the last one stays', () => {
  const out = output({ isTTY: true, columns: 63 });
  const reporter = reporterTo(out);
  reporter.progress(step(1));
  reporter.note('checkpoint written');
  reporter.progress(step(4));
  reporter.end();
  expect(out.text().replaceAll('\r\x1b[2K', '<clear>')).toMatchInlineSnapshot(`
    "<clear>[#####...............] train 1/4  reward 0.125  rollouts/s 812<clear>checkpoint written
    [#####...............] train 1/4  reward 0.125  rollouts/s 812<clear>[####################] train 4/4  reward 0.500  rollouts/s 812
    "
  `);
});

test('on a narrow terminal all figures are there, in more lines, which are redrawn together', () => {
  const out = output({ isTTY: true, columns: 46 });
  const reporter = reporterTo(out);
  reporter.progress(step(1));
  reporter.note('checkpoint written');
  reporter.progress(step(4));
  reporter.end();
  const text = out.text().replaceAll('\r\x1b[2K', '<clear>').replaceAll('\x1b[1A', '<up>');
  expect(text).toMatchInlineSnapshot(`
    "<clear>[#####...............] train 1/4
    reward 0.125  rollouts/s 812<clear><up><clear>checkpoint written
    [#####...............] train 1/4
    reward 0.125  rollouts/s 812<clear><up><clear>[####################] train 4/4
    reward 0.500  rollouts/s 812
    "
  `);
});

test('no line wraps, and what follows an unfinished bar begins a line', () => {
  const out = output({ isTTY: true, columns: 13 });
  const reporter = reporterTo(out);
  reporter.progress(step(1));
  reporter.end();
  reporter.end();
  expect(out.text()).toBe('\r\x1b[2K[#####......\nreward 0.125\nrollouts/s 8\n');
});

test('once it has ended no bar comes back: not with a step that was under way, nor with a note', () => {
  const out = output({ isTTY: true, columns: 80 });
  const reporter = reporterTo(out);
  reporter.progress(step(1));
  reporter.end();
  reporter.note('Stopping …');
  reporter.progress(step(2));
  reporter.note('Interrupted');
  expect(out.text().split('\n').slice(1)).toEqual(['Stopping …', 'Interrupted', '']);
});

test('a figure that is a text is shown as it is', () => {
  const out = output();
  reporterTo(out).progress({ phase: 'train', done: 1, total: 1, figures: { seed: '3', return: 0.5 } });
  expect(out.text()).toBe('train 1/1  seed 3  return 0.500\n');
});

test('a dumb terminal gets plain lines', () => {
  const out = output({ isTTY: true });
  reporterTo(out, { dumb: true }).progress(step(1));
  expect(out.text()).not.toContain('\x1b');
});

test('figures are short whatever their size', () => {
  expect([0, 0.1234567, -3, 812.4, 1e-5, Number.NaN, 123456.7].map(figure)).toEqual([
    '0.000',
    '0.123',
    '-3.000',
    '812',
    '1.0e-5',
    'NaN',
    '123457',
  ]);
});
