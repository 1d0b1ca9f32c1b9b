/**
 * @module The part of the guard that makes chance and the clock functions of the episode's seed and of the number of operations so
 * far. JavaScript text, like all of it: see `guard.ts`, in which it stands.
 */

/** The clock's first reading [ms]: 2025-01-01T00:00:00Z. It stands still within an operation and moves on by a second with each. */
export const CLOCK_START_MS = 1_735_689_600_000;
/** Local methods of dates, which become those of UTC. */
const UNITS = ['Date', 'FullYear', 'Hours', 'Milliseconds', 'Minutes', 'Month', 'Seconds'];
const TEXTS = ['String', 'DateString', 'TimeString', 'LocaleString', 'LocaleDateString', 'LocaleTimeString'];
const lines = (names: readonly string[], line: (name: string) => string) =>
  names.map((name) => `  ${line(name)}`).join('\n');

/** It leaves `begin`, which takes a seed, `random` and `now`, and the generator's state, which `settle` makes. */
export const SEEDED = String.raw`  // Random numbers: Alea (Johannes Baagøe, 2010, MIT), as seedrandom implements it and src/records/random.ts uses it.
  let s0 = 0, s1 = 0, s2 = 0, carry = 1;
  const { charCodeAt } = stringPrototype;
  // The generator is made when it is first asked: most episodes never ask.
  let unused;
  const begin = (function (seed) {
    unused = seed;
    now = ${CLOCK_START_MS};
  });
  const settle = () => {
    if (unused === undefined) return;
    const seed = unused;
    unused = undefined;
    let n = 0xefc8249d;
    const mash = (text) => {
      for (let i = 0; i < text.length; i++) {
        n += apply(charCodeAt, text, [i]);
        let h = 0.02519603282416938 * n;
        n = h >>> 0;
        h -= n;
        h *= n;
        n = h >>> 0;
        h -= n;
        n += h * 0x100000000;
      }
      return (n >>> 0) * 2.3283064365386963e-10;
    };
    s0 = mash(' ');
    s1 = mash(' ');
    s2 = mash(' ');
    s0 -= mash(seed);
    if (s0 < 0) s0 += 1;
    s1 -= mash(seed);
    if (s1 < 0) s1 += 1;
    s2 -= mash(seed);
    if (s2 < 0) s2 += 1;
    carry = 1;
  };
  const draw = () => {
    const t = 2091639 * s0 + carry * 2.3283064365386963e-10;
    s0 = s1;
    s1 = s2;
    carry = t | 0;
    s2 = t - carry;
    return s2;
  };
  const random = freeze(() => {
    settle();
    return draw() + ((draw() * 0x200000) | 0) * 1.1102230246251565e-16;
  });
  lock(Math, 'random', random);

  // The clock, and every method that would follow the host's time zone: UTC.
  let now = ${CLOCK_START_MS};
  const NativeDate = Date;
  const { parse: nativeParse, UTC } = NativeDate;
  const datePrototype = NativeDate.prototype;
  const { getTime } = datePrototype;
  const { toPrimitive } = Symbol;
  // Sees what V8's parser sees: it skips what stands in parentheses, which need not be closed, and ends at a NUL.
  const seen = (text) => {
    let out = '';
    let depth = 0;
    for (let i = 0; i < text.length && text[i] !== '\0'; i++) {
      if (text[i] === '(') depth++;
      if (depth === 0) out += text[i];
      else if (text[i] === ')' && --depth === 0) out += ' ';
    }
    return out;
  };
  // Only what that parser takes for a zone in any case: a word after a number, or an offset after such a word or a time. The last
  // part of 01-05-2020 is none. What is not known to have a zone is given UTC, which comes last and holds.
  const parseUtc = (given) => {
    const text = seen(given);
    const word = /\d[^]*(?<![^\0-@\s])(?:(?:z|utc?|gmt)\s*(?:[+-]\d\d(?::?\d\d)?)?|[ecmp][sd]t)\s*$/i;
    const offset = /(?:\d:[^]*\s|^[^:]*(?<!\d)\d\d?:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?)[+-]\d\d(?::?\d\d)?\s*$/;
    if (apply(exec, word, [text]) !== null || apply(exec, offset, [text]) !== null) return nativeParse(text);
    const dateTime = /^(?:\d{4}|[+-]\d{6})(?:-\d\d){0,2}T/;
    return nativeParse(apply(exec, dateTime, [text]) === null ? text + ' UTC' : text + 'Z');
  };
  const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';
  // ToPrimitive, which the native constructor would do and then parse the text as local time.
  const ordinary = datePrototype[toPrimitive];
  const primitiveOf = (value) => {
    const own = value[toPrimitive];
    if (own === undefined || own === null) return apply(ordinary, value, ['number']);
    const primitive = apply(own, value, ['default']);
    if (isObject(primitive)) throw new TypeError('Cannot convert object to primitive value');
    return primitive;
  };
  const timeOf = (value) => {
    if (!isObject(value)) return typeof value === 'string' ? parseUtc(value) : value;
    try {
      return apply(getTime, value, []);
    } catch {
      return timeOf(primitiveOf(value)); // no date
    }
  };
  const SeededDate = function Date(...parts) {
    if (new.target === undefined) return new NativeDate(now).toUTCString();
    if (parts.length === 0) return construct(NativeDate, [now], new.target);
    if (parts.length > 1) return construct(NativeDate, [apply(UTC, undefined, parts)], new.target);
    return construct(NativeDate, [timeOf(parts[0])], new.target);
  };
  lock(SeededDate, 'length', 7);
  lock(SeededDate, 'now', () => now);
  lock(SeededDate, 'parse', (text) => parseUtc(NativeString(text)));
  lock(SeededDate, 'UTC', UTC);
  replace(NativeDate, SeededDate);
${lines(UNITS, (unit) => `datePrototype.get${unit} = datePrototype.getUTC${unit}; datePrototype.set${unit} = datePrototype.setUTC${unit};`)}
  datePrototype.getDay = datePrototype.getUTCDay;
  const { toUTCString } = datePrototype;
${lines(TEXTS, (text) => `datePrototype.to${text} = toUTCString;`)}
  datePrototype.getTimezoneOffset = () => 0;
  delete datePrototype.toTemporalInstant; // leads to Temporal
  datePrototype.getYear = undefined;
  datePrototype.setYear = undefined;
`;
