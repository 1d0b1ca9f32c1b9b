/** @module The decimal texts of the integers in a range, as JSON.stringify writes them. */
import type { Language, Languages } from './language.ts';

const ZERO = 0x30;
const NINE = 0x39;

/** Safe integers `low` ≤ n ≤ `high`; `empty` where there are none. */
export function integers(languages: Languages, low: number, high: number): Language {
  const minus = languages.word([0x2d]);
  return languages.choice(
    languages.sequence(minus, naturals(languages, Math.max(-high, 1), -low)),
    naturals(languages, Math.max(low, 0), high),
  );
}

/** 0 ≤ low ≤ n ≤ high, by their number of digits. */
function naturals(languages: Languages, low: number, high: number): Language {
  const options: Language[] = [];
  for (let digits = 1, from = 0, to = 9; from <= high && from <= Number.MAX_SAFE_INTEGER; digits++) {
    const least = Math.max(from, low);
    const most = Math.min(to, high);
    if (least <= most) options.push(sameLength(languages, String(least), String(most)));
    from = 10 ** digits;
    to = Math.min(from * 10 - 1, Number.MAX_SAFE_INTEGER);
  }
  return languages.choice(...options);
}

function sameLength(languages: Languages, low: string, high: string): Language {
  const first = low.charCodeAt(0);
  const last = high.charCodeAt(0);
  const rest = low.length - 1;
  if (rest < 0) return languages.epsilon;
  const digits = (from: number, to: number) => languages.symbols(from <= to ? [[from, to]] : []);
  const tail = (from: string, to: string) => sameLength(languages, from, to);
  if (/^0*$/.test(low) && /^9*$/.test(high)) return languages.repeat(digits(ZERO, NINE), rest + 1, rest + 1);
  if (first === last) return languages.sequence(digits(first, first), tail(low.slice(1), high.slice(1)));
  return languages.choice(
    languages.sequence(digits(first, first), tail(low.slice(1), '9'.repeat(rest))),
    languages.sequence(digits(first + 1, last - 1), tail('0'.repeat(rest), '9'.repeat(rest))),
    languages.sequence(digits(last, last), tail('0'.repeat(rest), high.slice(1))),
  );
}
