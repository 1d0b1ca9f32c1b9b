import { expect, it } from 'vitest';
import { pieces } from '../../../src/env/sandbox/pieces.ts';
import { hostOf, world } from './programs.ts';

it('no piece has 1024 bytes, and together they are the text', () => {
  for (const length of [0, 1, 510, 511, 512, 1022, 1023, 10_000]) {
    const text = '\u{1f600}x'.repeat(length).slice(0, length);
    expect(pieces(text).join('')).toBe(text);
    expect(Math.max(...pieces(text).map((piece) => piece.length))).toBeLessThan(512);
  }
});

it('long texts arrive whole, alone and with others, surrogate pairs that a piece ends within included', () => {
  const host = hostOf(world({ echo: '(args) => given.text + args.text' }), 'state');
  try {
    for (const text of ['\u{1f600}'.repeat(700), `"${'\ud800x'.repeat(3000)}`, 'plain '.repeat(1000)]) {
      const open = host.open(JSON.stringify({ text }), 'seed');
      expect(open.call('echo', JSON.stringify({ text: '!' }), 5000)).toEqual({ status: 'ok', text: `${text}!` });
      open.close();
      const realms = [host.take(), host.take()];
      host.runAll(realms.map((realm) => host.opening(realm, JSON.stringify({ text }), 'seed')));
      const b = JSON.stringify({ text: text.toUpperCase() });
      const said = host.runAll(realms.map((realm) => ({ realm, operation: 'call', a: 'echo', b, timeoutMs: 5000 })));
      expect(said).toEqual(realms.map(() => ({ status: 'ok', text: text + text.toUpperCase() })));
      for (const realm of realms) host.give(realm);
    }
  } finally {
    host.dispose();
  }
});
