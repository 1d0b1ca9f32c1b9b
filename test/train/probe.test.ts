import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RolloutRunner } from '../../src/env/rollouts/rollout-runner.ts';
import type { RolloutEngine } from '../../src/env/rollouts/rollouts.ts';
import type { Rig } from '../../src/train/collect.ts';
import { probe } from '../../src/train/probe.ts';
import { TRIAL } from '../fixtures/rollouts.ts';
import { freshFolder, SMALL_TABULAR, trainShipped } from './runs.ts';

const TOY = new URL('../../src/env/toy-lookup/index.ts', import.meta.url).href;

test('a world whose create never comes back ends the run after its first two episodes', async () => {
  const dir = freshFolder();
  writeFileSync(join(dir, 'world.ts'), 'export default () => { for (;;); };\n');
  writeFileSync(
    join(dir, 'environment.ts'),
    `import toy from '${TOY}';\nexport default { ...toy, world: new URL('./world.ts', import.meta.url) };\n`,
  );
  const runs = freshFolder();
  const overrides = [...SMALL_TABULAR, 'workers=1', `environment.module=${join(dir, 'environment.ts')}`];
  await expect(trainShipped('toy-lookup-tabular.yaml', [...overrides, `runs.dir=${runs}`])).rejects.toMatchObject({
    code: 'WORLDS_BROKEN',
    message: expect.stringMatching(/first 2 tasks to open, found that none does: .*took longer than 5000 ms/),
  });
});

test('one world that does not open is its own failure and ends nothing', async () => {
  const runner = await RolloutRunner.create({ environment: TRIAL, options: {} });
  const task = (id: string, broken: boolean) => ({ id, prompt: 'Try.', public: { broken }, held: null });
  // The uniform policy has no grammar there.
  const rollouts: Pick<RolloutEngine, 'run'> = {
    run: (requests) => runner.run(requests, { kind: 'scripted', script: 'oracle' }),
  };
  const rig = { rollouts } as unknown as Rig;
  await probe(rig, [task('a', true), task('b', false)], '0');
  await expect(probe(rig, [task('a', true), task('b', true)], '0')).rejects.toMatchObject({ code: 'WORLDS_BROKEN' });
  await runner.close();
});
