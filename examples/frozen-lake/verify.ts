/** @module The class inside the verifier's isolate, which plays the recorded actions again and adds up the rewards. */
import { replayGym } from 'isogym/gym/inside';
import { FrozenLake, type Settings } from './frozen-lake.ts';

export default replayGym((settings: Settings) => new FrozenLake(settings));
