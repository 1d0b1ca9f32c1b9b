/** @module What if: one episode, then others that begin as it did and go on another way; and a world forked by hand. */
import { bundle, publicPart, RolloutRunner, WorldHost } from 'isogym/env';
import environment from './environment.ts';

const url = new URL('./environment.ts', import.meta.url).href;
const task = publicPart(environment.task('tasks', 0, environment.options.parse({})));
const request = { id: 'first', group: 'g', task, iteration: 0, rollout: 0, seed: 'seed' };

const runner = await RolloutRunner.create({ environment: url, options: {} });
const [parent] = await runner.run([request], { kind: 'scripted', script: 'oracle' });
if (parent === undefined) throw new Error('expected one episode for one request');
console.log('first:', parent.steps.map(({ action }) => action.text).join(' | '));

// Its first action once more, then, in place of what it did next, these texts; any other policy would do as well.
const fork = { ...request, id: 'second', seed: 'seed/second', fork: { parent, step: 1 } };
const [second] = await runner.run([fork], { kind: 'texts', texts: ['open d', 'answer opal'] });
console.log('second:', second?.steps.map(({ action }) => action.text).join(' | '));
await runner.close();

// The same for a search that needs no policy: a world, and forks of it.
const host = new WorldHost({ script: await bundle(environment.world), reset: 'state', memoryMiB: 32 });
const world = host.open(JSON.stringify(task.public), 'seed');
world.call('open', '{"box":"a"}', 1000);
const branch = world.fork();
console.log('one state:', branch.stateHash() === world.stateHash());
branch.call('open', '{"box":"b"}', 1000);
console.log('one state still:', branch.stateHash() === world.stateHash());
host.dispose();
