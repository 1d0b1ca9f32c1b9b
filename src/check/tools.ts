/** @module Checks of the tools: every way in which a call can be wrong is an observation, and every call that the schema admits is served. */
import type { Tool } from '../env/tool.ts';
import { messageOf } from '../records/errors.ts';
import type { Json, JsonObject } from '../records/json.ts';
import { callOf, drawTexts } from './draw.ts';
import { type CheckResult, failed, passed, short, skipped } from './result.ts';
import { type Call, type Trial, written } from './trial.ts';

/** Calls drawn from each tool's schema. */
const DRAWS = 40;
/** Fewer errors than these say nothing of a tool that only fails. */
const MANY = 5;
const OVERSIZE = 1_000_000;
/** How a tool may meet what its schema admits and it cannot do. */
const OWN_ERRORS: readonly unknown[] = ['tool-error', 'not-permitted'];
const WRONG: readonly Json[] = [null, true, -1.5, 'isogym check', [], {}];

/** The calls of each tool that its grammar gives, by name; of one without a grammar none. */
export function drawCalls(
  trial: Trial,
): ReadonlyMap<string, { readonly texts: readonly string[]; readonly calls: readonly Call[] }> {
  return new Map(
    trial.environment.tools.map((tool) => {
      try {
        const texts = drawTexts(trial.environment, trial.inside, tool, DRAWS, `${trial.seed}/${tool.name}`);
        return [tool.name, { texts, calls: texts.flatMap((text) => callOf(trial.inside, text) ?? []) }];
      } catch {
        // What the grammar has against it is a check of its own.
        return [tool.name, { texts: [], calls: [] }];
      }
    }),
  );
}

/** One call for each way to be wrong, in one world: each must be refused with its reason, and the world must serve on. */
export function checkErrors(trial: Trial, tool: Tool, good: readonly Call[]): CheckResult {
  const name = `errors of ${tool.name}`;
  const [task] = trial.tasks;
  const [first] = good;
  if (task === undefined || first === undefined) return skipped(name, 'no call could be drawn from its schema');
  const wrong = wrongCalls(tool, first);
  const world = trial.open(trial.host(), task);
  const run = trial.caller(world, task);
  for (const { what, call, error } of wrong) {
    const record = run(written(call, 0));
    if (record.error === error && record.attempts === 0) continue;
    const came = record.error ?? 'a result';
    return failed(
      name,
      short(`${what}: expected ${error}, found ${came}: ${record.observation}`),
      'Make the tool with defineTool, and let its schema say what it takes (z.strictObject, no z.any, no z.coerce).',
    );
  }
  for (const { what, call } of oversize(tool, first)) {
    const { error, observation } = run(written(call, 0));
    const fine = [undefined, 'invalid-arguments', 'too-much-output', ...OWN_ERRORS];
    if (fine.includes(error)) continue;
    return failed(
      name,
      short(`${what} of ${OVERSIZE} characters: ${error}: ${observation}`),
      'Bound the argument in the schema (.max), or let the tool throw an error for what is too long.',
    );
  }
  const after = run(written(first, 0));
  world.close();
  if (after.states.at(-1) === 'crashed' || after.states.at(-1) === 'timeout') {
    return failed(
      name,
      short(`a right call after the wrong ones: ${after.observation}`),
      'Look for what the tool keeps of a call that failed.',
    );
  }
  const kinds = [...new Set(wrong.map(({ what }) => what.split(' ')[0]))].join(', ');
  return passed(
    name,
    `${wrong.length} wrong calls (${kinds}) refused with their reason, oversize texts served or refused, the world serves on`,
  );
}

interface WrongCall {
  readonly what: string;
  readonly call: Call;
  readonly error: string;
}

function wrongCalls(tool: Tool, good: Call): readonly WrongCall[] {
  const keys = Object.keys(tool.parameters.shape);
  const refuses = (args: JsonObject) => !tool.parameters.safeParse(args).success;
  const invalid = (what: string, args: JsonObject): WrongCall => ({
    what,
    call: { tool: tool.name, arguments: args },
    error: 'invalid-arguments',
  });
  const missing = keys.flatMap((key) => {
    const { [key]: _, ...rest } = good.arguments;
    return refuses(rest) ? [invalid(`missing ${key}`, rest)] : [];
  });
  const typed = keys.flatMap((key) => {
    const value = WRONG.find((one) => refuses({ ...good.arguments, [key]: one }));
    return value === undefined ? [] : [invalid(`wrong ${key}`, { ...good.arguments, [key]: value })];
  });
  return [
    { what: 'unknown tool', call: { ...good, tool: `${tool.name}_x`.slice(-60) }, error: 'unknown-tool' },
    invalid('extra argument', { ...good.arguments, isogym_check: 1 }),
    ...missing,
    ...typed,
  ];
}

/** A very long text in the place of each argument that is one. */
function oversize(tool: Tool, good: Call): readonly { readonly what: string; readonly call: Call }[] {
  return Object.keys(tool.parameters.shape)
    .filter((key) => typeof good.arguments[key] === 'string')
    .map((key) => ({
      what: key,
      call: { tool: tool.name, arguments: { ...good.arguments, [key]: 'x'.repeat(OVERSIZE) } },
    }));
}

/** What is drawn from the schema's grammar is accepted by the schema and served by the world. */
export function checkSchema(trial: Trial, tool: Tool, texts: readonly string[]): CheckResult {
  const name = `schema of ${tool.name}`;
  const [task] = trial.tasks;
  if (task === undefined || texts.length === 0) return skipped(name, 'no call could be drawn from its schema');
  const host = trial.host();
  const counts = { ok: 0, errors: 0 };
  let firstError = '';
  for (const text of texts) {
    const [call] = trial.inside.format.parse(text, 1).calls;
    if (call === undefined || call.arguments === null) {
      return failed(
        name,
        short(`the grammar writes ${JSON.stringify(text)}, which is not read as a call: ${call?.malformed}`),
        'This is a fault of isogym: please report it with the tool.',
      );
    }
    const [record] = trial.play(host, task, [{ tool: call.name, arguments: call.arguments }]);
    const { error, observation } = record ?? { error: 'crashed', observation: '' };
    if (error === undefined) counts.ok++;
    else if (OWN_ERRORS.includes(error)) {
      counts.errors++;
      firstError ||= observation;
      // The author's fault, whatever the policy wrote.
      if (/: The tool must return a string|: The world has no tool /.test(observation)) {
        return failed(
          name,
          short(`${text}: ${observation}`),
          `The world must have a function ${tool.name} that returns a string for all that the schema admits; throw an Error for what cannot be done.`,
        );
      }
    } else {
      const hint =
        error === 'invalid-arguments'
          ? 'The schema refuses what its own grammar admits: say it with what the grammar knows (docs/tutorial.md lists it), or throw in the world.'
          : 'The world must serve or refuse (throw an Error) all that the schema admits, within timeoutMs and memoryMiB.';
      return failed(name, short(`${text}: ${error}: ${observation}`), hint);
    }
  }
  if (counts.ok === 0 && counts.errors >= MANY) {
    return failed(
      name,
      short(`all of ${texts.length} calls drawn from the schema are errors, the first: ${firstError}`),
      'Narrow the schema to what the tool can do (z.enum, .regex, bounds): a policy that explores would see errors alone.',
    );
  }
  const errors = counts.errors === 0 ? '' : `, ${counts.errors} an error of the tool's own (${short(firstError)})`;
  return passed(
    name,
    `${texts.length} calls drawn from its grammar: all accepted, ${counts.ok} with a result${errors}`,
  );
}

/** The grammar of all actions, or what stands against it. */
export function checkGrammar(trial: Trial): CheckResult {
  const name = 'grammar';
  try {
    const { grammar, tokenizer } = trial.inside;
    const first = grammar.allowed(grammar.start).length;
    return passed(
      name,
      `${trial.environment.tools.length === 1 ? '1 tool' : `${trial.environment.tools.length} tools`} and the answer in the ${trial.environment.format} format, ${tokenizer.size} tokens, ${first} of them may begin an action`,
    );
  } catch (error) {
    const hint = (error as { hint?: string }).hint ?? 'docs/tutorial.md lists the schemas that have a grammar.';
    return failed(name, short(messageOf(error)), hint);
  }
}
