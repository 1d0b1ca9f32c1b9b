/** @module What is wrong with a declared environment, all of it at once. Looks at the declaration and runs nothing of it. */
import { Declared, isSchema } from '../records/declaration.ts';
import { declaredCode } from './sandbox/code.ts';
import { MIN_MEMORY_MIB } from './sandbox/realm-pool.ts';
import { toolProblems } from './tool.ts';

const KEYS = [
  ...['name', 'options', 'world', 'tools', 'answer', 'format', 'words', 'limits', 'reset', 'code', 'isolation'],
  ...['memoryMiB', 'task', 'scripts', 'tabular'],
];
const LIMITS = ['maxSteps', 'maxTokens', 'maxActionTokens', 'maxCalls', 'maxMalformed'];
const TABULAR = ['states', 'actions', 'observe', 'act'];

/** Of an environment with its defaults filled in: `path: expected …, found …` each; none where it can be run. */
export function environmentProblems(environment: unknown): readonly string[] {
  const declared = new Declared(environment);
  declared.only(KEYS);
  declared.expect('name', 'kebab-case, e.g. "toy-lookup"', (name) => isText(name) && /^[a-z][a-z0-9-]*$/.test(name));
  declared.expect('options', 'a schema of zod 4, e.g. z.strictObject({})', (options) => isSchema(options));
  declared.moduleUrl('world', './world.ts');
  declared.expect('answer', 'a schema of zod 4 for texts, e.g. z.string()', (answer) => isSchema(answer));
  declared.expect('task', 'a function (seed, index, options) → task', isFunction);
  declared.oneOf('format', ['compact', 'json']);
  declared.oneOf('reset', ['state', 'context', 'isolate']);
  declared.oneOf('isolation', ['thread', 'process']);
  declared.wholeNumber('memoryMiB', MIN_MEMORY_MIB);
  const words = declared.list('words', 'non-empty strings', (word) => isText(word) && word !== '');
  declared.different('words', 'strings', words);
  const tools = declared.list('tools', 'tools made by defineTool', (tool) => typeof tool === 'object' && tool !== null);
  for (const [i, tool] of tools.entries()) {
    for (const problem of toolProblems(tool)) declared.add(`tools[${i}]`, problem);
  }
  const names = tools.map((tool) => (tool as { readonly name?: unknown } | null)?.name);
  declared.different('tools', 'names', names);
  declared.part(limits(declared.get('limits')));
  declared.part(scripts(declared.get('scripts')));
  if (declared.get('tabular') !== undefined) declared.part(tabular(declared.get('tabular')));
  if (declared.get('code') !== undefined) {
    declared.part(declaredCode(declared.get('code')));
    if (declared.get('isolation') === 'thread') {
      const why = 'since its worlds run code that the policy wrote';
      declared.add('isolation', `expected process, ${why}, found thread`);
    }
  }
  return declared.problems;
}

function limits(value: unknown): Declared {
  const declared = new Declared(value, 'limits');
  declared.only(LIMITS);
  for (const limit of LIMITS) declared.wholeNumber(limit, 1);
  return declared;
}

function scripts(value: unknown): Declared {
  const declared = new Declared(value, 'scripts');
  for (const name of declared.keys()) declared.expect(name, 'a function (view) → action', isFunction);
  return declared;
}

function tabular(value: unknown): Declared {
  const declared = new Declared(value, 'tabular');
  declared.only(TABULAR);
  declared.wholeNumber('states', 1);
  const actions = declared.list('actions', 'non-empty strings', (action) => isText(action) && action !== '');
  declared.different('actions', 'strings', actions);
  if (Array.isArray(declared.get('actions')) && actions.length < 2) {
    const found = actions.length === 0 ? 'none' : 'one, of which nothing can be learnt';
    declared.add('actions', `expected at least two actions, found ${found}`);
  }
  declared.expect('observe', 'a function (view) → state number', isFunction);
  declared.expect('act', 'a function (action number, view) → action', isFunction);
  return declared;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}
