/** @module What a run tells a person while it works. The command line implements it; a library user may pass none. */

export interface Progress {
  readonly phase: string;
  readonly done: number;
  readonly total: number;
  /** Figures to show, by name, in this order: numbers as the output likes them, texts as they are. */
  readonly figures: Readonly<Record<string, number | string>>;
}

export interface Reporter {
  /** One line that stays. */
  note(text: string): void;
  progress(progress: Progress): void;
}

export const SILENT: Reporter = { note: () => undefined, progress: () => undefined };
