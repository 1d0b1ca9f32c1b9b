/** @module The world of my-environment, inside the isolate: no file, no network, no clock, and of a task its `public` part alone. */
import type { Hidden } from './environment.ts';

/** Called once an episode: all of its state belongs in here. */
export default function create({ public: { number: hidden } }: { readonly public: Hidden }) {
  return {
    tools: {
      compare({ number }: { readonly number: number }): string {
        if (number === hidden) return 'equal';
        return number < hidden ? 'higher' : 'lower';
      },
    },
  };
}
