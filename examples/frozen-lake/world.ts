/** @module The class inside the isolate, where the policy's actions reach it. Its rewards stay there. */
import { mountGym } from 'isogym/gym/inside';
import { FrozenLake, type Settings } from './frozen-lake.ts';

export default mountGym((settings: Settings) => new FrozenLake(settings));
