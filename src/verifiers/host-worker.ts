/** @module A verifier's worker that owns a sandbox host: supervises it, and reads the scores that come from it as untrusted. */
import { workerData } from 'node:worker_threads';
import { HostSupervisor } from '../env/sandbox/host/supervisor.ts';
import { messageOf } from '../records/errors.ts';
import type { Score } from '../records/trajectory.ts';
import { readScores } from './read-scores.ts';
import type { ScoringSetup } from './scoring-service.ts';
import { unscored, type WrittenInputs } from './written.ts';

const setup = workerData as ScoringSetup;
const { judge } = setup;
const { memoryMiB, code } = judge;
const supervisor = new HostSupervisor({
  service: new URL('./scoring-service.ts', import.meta.url),
  setup,
  limits: { residentMiB: 512 + 4 * (memoryMiB + (code?.memoryMiB ?? 0)), graceMs: 250, outsideMs: 10_000 },
  recycleAfter: 5000,
});

/**
 * Where the host dies, one of the inputs did it: each is scored again alone, and the one that takes it down again is unscored.
 * `close` ends the host.
 */
export default async function work(inputs: WrittenInputs | 'close'): Promise<string> {
  if (inputs !== 'close') return JSON.stringify(await scoreBatch(inputs));
  await supervisor.close();
  return '[]';
}

async function scoreBatch(inputs: WrittenInputs): Promise<readonly Score[]> {
  const { stops, texts } = inputs;
  if (texts.length === 0) {
    await supervisor.start();
    return [];
  }
  const answer = await supervisor.run(inputs, { weight: texts.length });
  let why: string;
  if ('death' in answer) {
    why = `${answer.death.kind}: ${answer.death.message}`;
  } else {
    try {
      return readScores(answer.result, stops, judge);
    } catch (error) {
      why = messageOf(error);
    }
  }
  if (texts.length === 1) return [unscored(`the verifier's process died: ${why}`)];
  const scores: Score[] = [];
  for (const [i, text] of texts.entries()) {
    scores.push(...(await scoreBatch({ stops: stops.slice(i, i + 1), texts: [text] })));
  }
  return scores;
}
