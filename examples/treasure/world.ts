/** @module The boxes, inside the isolate: no file, no network, no clock, and nothing of what the verifier knows. */
import type { Boxes } from './environment.ts';

export default function create({ public: { boxes } }: { readonly public: Boxes }) {
  return {
    tools: {
      open: ({ box }: { readonly box: keyof Boxes['boxes'] }): string => boxes[box],
    },
  };
}
