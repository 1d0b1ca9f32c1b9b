/** What the verifiers' tests judge. */
import type { VerifierInput } from '../../src/verifiers/verifier.ts';

export function inputOf(changes: Partial<VerifierInput> = {}): VerifierInput {
  return {
    taskId: 'task-1',
    prompt: 'What is 40 + 6?',
    public: null,
    held: { answer: '46' },
    steps: [],
    stop: 'final',
    final: '46',
    ...changes,
  };
}
