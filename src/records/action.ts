/** @module An action: what one request to the policy yields. One step of an episode is one action. */
import type { JsonObject } from './json.ts';

export interface ToolCall {
  /** Unique within the episode; results are matched by it, in call order. */
  readonly id: string;
  readonly name: string;
  /** The parsed arguments, or null where `raw` could not be parsed; `malformed` then says why. */
  readonly arguments: JsonObject | null;
  /** The arguments exactly as the policy wrote them, never rewritten. */
  readonly raw: string;
  readonly malformed?: string;
}

export interface Action {
  /** Everything that the policy wrote in this step. */
  readonly text: string;
  readonly calls: readonly ToolCall[];
  /** The final answer. It ends the episode; no environment scores it, the verifier does. */
  readonly final?: string;
}
