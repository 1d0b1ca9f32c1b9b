import { describe, expect, it } from 'vitest';
import { importVerifier } from '../../src/verifiers/load.ts';
import { defineVerifier } from '../../src/verifiers/verifier.ts';

const good = { name: 'mine', source: new URL('file:///verify.ts') };

describe('defineVerifier', () => {
  it('fills the defaults', () => {
    expect(defineVerifier(good)).toMatchObject({ range: [0, 1], success: 1, timeoutMs: 1000, reset: 'context' });
  });

  it.each([
    [{ name: '' }, 'name: expected a name, e.g. "right-answer", found ""'],
    [{ source: './verify.ts' }, `source: expected new URL('./verify.ts', import.meta.url), found "./verify.ts"`],
    [{ range: [1, 0] }, 'range: expected [low, high], two finite numbers with low < high, found [1, 0]'],
    [{ range: [0, Number.NaN] }, 'found [0, NaN]'],
    [{ range: [0, Number.POSITIVE_INFINITY] }, 'found [0, Infinity]'],
    [{ range: 1 }, 'range: expected [low, high], two finite numbers with low < high, found 1'],
    [{ success: 1.5 }, 'success: expected a score in the range [0, 1], found 1.5'],
    [{ success: Number.NaN }, 'success: expected a score in the range [0, 1], found NaN'],
    [{ range: [0, 10], success: 11 }, 'success: expected a score in the range [0, 10], found 11'],
    [{ timeoutMs: -1 }, 'timeoutMs: expected an integer from 1 to 2147483647, found -1'],
    [{ timeoutMs: Number.NaN }, 'timeoutMs: '],
    [{ memoryMiB: 4 }, 'memoryMiB: expected an integer ≥ 8, found 4'],
    [{ reset: 'all' }, 'reset: expected one of state, context, isolate, found "all"'],
    [{ canary: 3 }, 'canary: expected a text, found 3'],
    [{ code: { maxRun: 3 } }, 'code.maxRun: expected no such key (did you mean maxRuns?)'],
    [{ threshold: 1 }, 'threshold: expected no such key'],
  ])('%j is refused', (wrong, message) => {
    try {
      defineVerifier({ ...good, ...wrong } as never);
    } catch (error) {
      expect(error).toMatchObject({ code: 'INVALID_VERIFIER', exitCode: 2 });
      expect((error as Error).message).toContain(message);
      return;
    }
    expect.unreachable();
  });

  it('all problems are told at once', () => {
    expect(() => defineVerifier({ ...good, timeoutMs: -1, range: [1, 0], memoryMiB: 0 })).toThrow(
      /range: .*; timeoutMs: .*; memoryMiB: /,
    );
  });
});

it('an object that never went through defineVerifier is told apart when it is loaded', async () => {
  const url = new URL('./fixtures/look-alike.ts', import.meta.url).href;
  await expect(importVerifier(url)).rejects.toMatchObject({
    code: 'VERIFIER_BROKEN',
    message: expect.stringMatching(/success: .*; timeoutMs: .*; memoryMiB: .*; reset: .*; canary: /),
  });
});
