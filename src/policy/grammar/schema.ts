/**
 * @module A zod schema to the language of the texts of its values. It reads the schema itself and not its JSON Schema: that
 * loses flags of regular expressions, refinements and checks that rewrite, and the grammar would admit what validation then refuses.
 *
 * Strings are well-formed ones (see `text.ts`), integers are written without exponent, objects have their keys in declared order
 * and no unknown ones. Bounds on lengths and counts go up to `MAX_COUNT`; without an upper bound there is none.
 */
import { z } from 'zod';
import { inputError } from '../../records/errors.ts';
import { toBytes } from '../tokenizer.ts';
import { integers } from './integers.ts';
import type { Language, Languages } from './language.ts';
import { MAX_COUNT, PATTERN_SUPPORT, parsePattern } from './pattern.ts';
import { type TextPattern, Texts } from './text.ts';

export type Schema = z.core.$ZodType;
type Def = z.core.$ZodTypes['_zod']['def'];
type Check = z.core.$ZodChecks['_zod']['def'];

const SUPPORTED =
  'z.string() with .min .max .length .regex, z.enum(), z.literal(), z.int() with bounds, z.boolean(), z.null(), ' +
  '.nullable(), z.array() with .min .max .length, z.strictObject() with keys that may be .optional(), z.union() of these';

/** How values are written. `place` is for messages, e.g. `tool lookup, parameters.key`. */
export class Values {
  readonly #languages: Languages;
  readonly #texts: Texts;

  constructor(languages: Languages) {
    this.#languages = languages;
    this.#texts = new Texts(languages);
  }

  /** As JSON.stringify writes them. @throws GRAMMAR_UNSUPPORTED */
  json(schema: Schema, place: string): Language {
    return this.#some(this.#json(schema, place), place);
  }

  /**
   * The value of the only parameter: a string as it is, all else as JSON.
   * @throws GRAMMAR_UNSUPPORTED, also for a union with strings in it, whose texts could mean two things.
   */
  only(parameters: z.ZodObject, place: string): Language {
    refuseChecks(parameters, place);
    const entries: [string, Schema][] = Object.entries(parameters.shape);
    const [entry] = entries;
    if (entry === undefined || entries.length > 1) {
      return unsupported(place, `${entries.length} parameters in the compact format`, "exactly one, or format: 'json'");
    }
    const [key, schema] = entry;
    const where = `${place}.${key}`;
    if (!holds(schema, 'strings')) return this.json(schema, where);
    if (holds(schema, 'others') || defOf(schema).type === 'union') {
      unsupported(
        where,
        'a union with strings in it in the compact format',
        "a string or something else, or format: 'json'",
      );
    }
    return this.text(schema, where);
  }

  /** Strings as they are. @throws GRAMMAR_UNSUPPORTED, also where a value may be no string. */
  text(schema: Schema, place: string): Language {
    refuseOthers(schema, place);
    return this.#some(this.#bare(schema, place), place);
  }

  /** Strings as JSON. @throws GRAMMAR_UNSUPPORTED, also where a value may be no string. */
  quoted(schema: Schema, place: string): Language {
    refuseOthers(schema, place);
    return this.json(schema, place);
  }

  #bare(schema: Schema, place: string): Language {
    const def = defOf(schema);
    if (def.type === 'string') return this.#texts.bare(this.#rules(schema, def, place));
    refuseChecks(schema, place);
    if (def.type === 'union') {
      return this.#languages.choice(...optionsOf(def, place).map((option) => this.#bare(option, place)));
    }
    return this.#literals(schema, place, String);
  }

  #json(schema: Schema, place: string): Language {
    const def = defOf(schema);
    switch (def.type) {
      case 'string':
        return this.#texts.quoted(this.#rules(schema, def, place));
      case 'number':
        return this.#integers(schema, def, place);
      case 'array': {
        const { min, max } = lengths(checksOf(schema), place);
        return this.#array(this.#json(def.element, `${place}[]`), min, max);
      }
    }
    refuseChecks(schema, place);
    switch (def.type) {
      case 'literal':
      case 'enum':
        return this.#literals(schema, place, JSON.stringify);
      case 'boolean':
        if (def.coerce) unsupported(place, 'z.coerce');
        return this.#languages.choice(this.#word('false'), this.#word('true'));
      case 'null':
        return this.#word('null');
      case 'nullable':
        return this.#languages.choice(this.#json(def.innerType, place), this.#word('null'));
      case 'union':
        return this.#languages.choice(...optionsOf(def, place).map((option) => this.#json(option, place)));
      case 'object':
        return this.#object(def, place);
      default:
        return unsupported(place, `z.${def.type}`);
    }
  }

  #literals(schema: Schema, place: string, write: (value: string | number | boolean | null) => string): Language {
    const words = Array.from(schema._zod.values ?? [], (value) => {
      if (typeof value === 'bigint' || typeof value === 'symbol' || value === undefined) {
        return unsupported(place, `the literal ${String(value)}`);
      }
      if (typeof value === 'number' && !Number.isFinite(value)) return unsupported(place, `the literal ${value}`);
      return [...toBytes(write(value))];
    });
    return this.#languages.words(words);
  }

  #rules(schema: Schema, def: Def & { type: 'string' }, place: string) {
    if (def.coerce) unsupported(place, 'z.coerce');
    const patterns: TextPattern[] = [];
    const others = checksOf(schema).filter((check) => {
      if (check.check !== 'string_format') return true;
      const pattern = check.format === 'regex' ? check.pattern : undefined;
      if (pattern === undefined)
        return unsupported(place, `the string format ${check.format}`, `${SUPPORTED}; write the format as .regex()`);
      patterns.push(
        parsePattern(this.#languages, pattern, (found) => unsupported(place, found, `in patterns: ${PATTERN_SUPPORT}`)),
      );
      return false;
    });
    return { ...lengths(others, place), patterns };
  }

  #integers(schema: Schema, def: Def & { type: 'number' }, place: string): Language {
    if (def.coerce) unsupported(place, 'z.coerce');
    let low = Number.NEGATIVE_INFINITY;
    let high = Number.POSITIVE_INFINITY;
    let integer = false;
    for (const check of checksOf(schema)) {
      if (check.check === 'number_format' && !check.format.startsWith('float')) {
        integer = true;
        const [least, most] = z.core.util.NUMBER_FORMAT_RANGES[check.format];
        low = Math.max(low, least);
        high = Math.min(high, most);
      } else if (check.check === 'greater_than') {
        const value = Number(check.value);
        low = Math.max(low, check.inclusive ? Math.ceil(value) : Math.floor(value) + 1);
      } else if (check.check === 'less_than') {
        const value = Number(check.value);
        high = Math.min(high, check.inclusive ? Math.floor(value) : Math.ceil(value) - 1);
      } else unsupported(place, describeCheck(check));
    }
    if (!integer) unsupported(place, 'a number that need not be an integer');
    return integers(this.#languages, low, high);
  }

  #array(item: Language, min: number, max: number): Language {
    const languages = this.#languages;
    const more = languages.repeat(languages.sequence(this.#word(','), item), Math.max(min - 1, 0), max - 1);
    const some = max < 1 ? languages.empty : languages.sequence(item, more);
    const items = min === 0 ? languages.choice(languages.epsilon, some) : some;
    return languages.sequence(this.#word('['), items, this.#word(']'));
  }

  #object(def: Def & { type: 'object' }, place: string): Language {
    const languages = this.#languages;
    if (def.catchall !== undefined && defOf(def.catchall).type !== 'never')
      unsupported(place, 'an object with unknown keys');
    // From the last key to the first: what follows where no key has been written yet, and where one has.
    let fresh = this.#word('}');
    let begun = fresh;
    for (const [key, schema] of Object.entries(def.shape).reverse()) {
      const inner = defOf(schema);
      const optional = inner.type === 'optional';
      if (optional) refuseChecks(schema, `${place}.${key}`);
      const value = this.#json(optional ? inner.innerType : schema, `${place}.${key}`);
      const entry = languages.sequence(this.#word(`${JSON.stringify(key)}:`), value, begun);
      const next = languages.sequence(this.#word(','), entry);
      fresh = optional ? languages.choice(entry, fresh) : entry;
      begun = optional ? languages.choice(next, begun) : next;
    }
    return languages.sequence(this.#word('{'), fresh);
  }

  #word(text: string): Language {
    return this.#languages.word(toBytes(text));
  }

  #some(language: Language, place: string): Language {
    if (language === this.#languages.empty) unsupported(place, 'a schema that admits no value', 'at least one value');
    return language;
  }
}

function defOf(schema: Schema): Def {
  return (schema as z.core.$ZodTypes)._zod.def;
}

/** A format such as z.int() is a schema and a check in one. */
function checksOf(schema: Schema): readonly Check[] {
  const { def } = schema._zod;
  const checks: readonly object[] = (def.checks ?? []).map((check) => check._zod.def);
  return ('check' in def ? [def, ...checks] : checks) as readonly Check[];
}

function refuseChecks(schema: Schema, place: string): void {
  for (const check of checksOf(schema)) unsupported(place, describeCheck(check));
}

function describeCheck(check: Check): string {
  const { check: name } = check as { readonly check: string };
  if (name === 'custom') return 'a refinement';
  if (name === 'overwrite') return 'a check that rewrites the value, such as .trim()';
  return `the check ${name}`;
}

function lengths(checks: readonly Check[], place: string): { readonly min: number; readonly max: number } {
  let min = 0;
  let max = Number.POSITIVE_INFINITY;
  for (const check of checks) {
    if (check.check === 'min_length') min = Math.max(min, Math.ceil(check.minimum));
    else if (check.check === 'max_length') max = Math.min(max, Math.floor(check.maximum));
    else if (check.check === 'length_equals') {
      min = Math.max(min, check.length);
      max = Math.min(max, check.length);
    } else unsupported(place, describeCheck(check));
  }
  if (min > MAX_COUNT || (max > MAX_COUNT && max !== Number.POSITIVE_INFINITY)) {
    unsupported(
      place,
      `the length bound ${min > MAX_COUNT ? min : max}`,
      `bounds up to ${MAX_COUNT}, or no upper bound`,
    );
  }
  return { min, max };
}

function optionsOf(def: Def & { type: 'union' }, place: string): readonly Schema[] {
  if (def.inclusive === false) unsupported(place, 'z.xor');
  return def.options;
}

/** Whether any value of the schema is a string, or is something else. */
function holds(schema: Schema, what: 'strings' | 'others'): boolean {
  const def = defOf(schema);
  if (def.type === 'union') return def.options.some((option) => holds(option, what));
  if (def.type === 'nullable') return what === 'others' || holds(def.innerType, what);
  if (def.type === 'literal' || def.type === 'enum') {
    return [...(schema._zod.values ?? [])].some((value) => (typeof value === 'string') === (what === 'strings'));
  }
  return (def.type === 'string') === (what === 'strings');
}

function refuseOthers(schema: Schema, place: string): void {
  if (!holds(schema, 'others')) return;
  unsupported(place, `z.${defOf(schema).type}`, 'strings: z.string(), z.enum(), z.literal(), z.union() of these');
}

function unsupported(place: string, found: string, supported = SUPPORTED): never {
  throw inputError(
    'GRAMMAR_UNSUPPORTED',
    `${place}: the decoding grammar does not support ${found}`,
    `Supported: ${supported}.`,
  );
}
