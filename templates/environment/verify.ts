/** @module Inside the verifier's isolate: 1 for the expected answer, else 0. It sees the whole episode; see `VerifierInput`. */
export default function verify({
  held,
  final,
}: {
  readonly held: { readonly answer: string };
  readonly final: string | null;
}) {
  if (final === null) return { score: 0, reasons: ['no answer'] };
  const right = final === held.answer;
  return { score: right ? 1 : 0, reasons: [right ? 'the hidden number' : `expected ${held.answer}, found ${final}`] };
}
