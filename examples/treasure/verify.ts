/** @module Inside the verifier's isolate, after the episode has ended: 1 for the right gem, else 0. */
export default function verify({
  held,
  final,
}: {
  readonly held: { readonly gem: string };
  readonly final: string | null;
}) {
  const right = final === held.gem;
  return {
    score: right ? 1 : 0,
    reasons: [right ? 'the right gem' : `expected ${held.gem}, found ${final ?? 'no answer'}`],
  };
}
