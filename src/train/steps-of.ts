/** @module Which steps a run takes in this process. */
import type { Model } from '../policy/model.ts';
import { canReplay } from '../policy/replay/session.ts';
import { EagerSteps } from './eager-steps.ts';
import { ReplayedSteps } from './replayed-steps.ts';
import type { Steps, StepsStart } from './steps.ts';

/** @param replay recorded graphs where the backend that is set can replay them (`native`, `cuda`); otherwise, and where false, eager steps */
export function stepsOf(model: Model, replay: boolean, start: StepsStart): Steps {
  return replay && canReplay() ? new ReplayedSteps(model, start) : new EagerSteps(model, start);
}
