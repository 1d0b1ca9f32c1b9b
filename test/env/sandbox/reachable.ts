/**
 * @module Which functions foreign code can reach behind the guard, by their paths. `fixtures/reachable.txt` has those of the engines
 * that somebody has looked at, Node 22 and 24: run this file with an engine to have its own, and look at what is not yet there.
 */
import { argv } from 'node:process';
import { createContext, runInContext } from 'node:vm';
import { guarded } from '../../../src/env/sandbox/guard.ts';

/** The body of a function that gives them, a line each: from the global object on, and from what syntax makes. */
export const REACHABLE = `
  const roots = {
    globalThis,
    generator: function* () {},
    async: async () => {},
    asyncGenerator: async function* () {},
    strict: (function () { 'use strict'; return arguments; })(),
    array: [].values(),
    map: new Map().entries(),
    set: new Set().values(),
    string: ''[Symbol.iterator](),
    matches: ''.matchAll(/x/g),
    helper: [].values().map((value) => value),
    wrapped: Iterator.from({ next() {} }),
    error: new Error(),
    template: ((strings) => strings)\`\`,
  };
  const seen = new Set(), paths = [];
  const open = Object.keys(roots).map((name) => [name, roots[name]]);
  for (let i = 0; i < open.length; i++) {
    const [path, at] = open[i];
    if (at === null || (typeof at !== 'object' && typeof at !== 'function') || seen.has(at)) continue;
    seen.add(at);
    if (typeof at === 'function') paths.push(path);
    const inner = path === 'globalThis' ? '' : path + '.';
    for (const key of Reflect.ownKeys(at)) {
      const { value, get, set } = Reflect.getOwnPropertyDescriptor(at, key);
      const name = inner + (typeof key === 'symbol' ? '[' + key.description + ']' : key);
      open.push([name, value], [name + ' (get)', get], [name + ' (set)', set]);
    }
    open.push([inner + '(prototype)', Object.getPrototypeOf(at)]);
  }
  return paths.sort().join('\\n');`;

/** In a context of this engine, whether or not it is the sandbox's. */
export function reachableHere(): string {
  const context = createContext();
  runInContext(guarded(), context);
  return runInContext(`(() => { ${REACHABLE} })()`, context) as string;
}

if (import.meta.filename === argv[1]) console.log(reachableHere());
