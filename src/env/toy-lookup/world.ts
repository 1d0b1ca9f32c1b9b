/** @module The world of toy-lookup. Runs inside the isolate: a fact table and a calculator. */
import type { CreateWorld } from '../index.ts';
import { calculate } from '../tools/calculator.ts';
import type { LookupPublic } from './tasks.ts';

const createWorld: CreateWorld<LookupPublic> = ({ public: { facts } }) => ({
  tools: {
    lookup: ({ key }: { key: string }) => String(facts[key]),
    calculator: ({ expression }: { expression: string }) => calculate(expression),
  },
});

export default createWorld;
