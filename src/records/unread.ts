/**
 * @module Records whose steps and segments are made when they are first read. Many are counted and judged by their answer alone, and
 * what a record holds are some hundred objects. They are enumerable, and so JSON, spreads and copies find them where they
 * stand in any other record, and make them.
 */
import type { Episode, Trajectory } from './trajectory.ts';

/** What is not yet read of a record; whoever gives it has checked it, for making it must not fail. */
export interface Contents {
  /** How many steps there are. */
  readonly count: number;
  /** The same object each time. */
  read(): Pick<Episode, 'steps' | 'segments'>;
}

type Perhaps = 'forkedFrom' | 'stopDetail' | 'failure';

/** All else of it; what is undefined is left out. */
export type Rest = Omit<Episode, 'steps' | 'segments' | Perhaps> & { readonly [K in Perhaps]?: Episode[K] | undefined };
export type Judgement = Omit<Trajectory, keyof Episode | 'learntIn'>;

/** The record of an episode. */
export function unread(rest: Rest, contents: Contents): Episode {
  return new Unread(rest, contents);
}

/** How many steps it has: makes nothing. */
export function stepCount(record: Pick<Episode, 'steps'>): number {
  return contentsOf(record)?.count ?? record.steps.length;
}

/** A copy with its judgement: makes nothing. */
export function judged(episode: Episode, judgement: Judgement): Trajectory {
  const contents = contentsOf(episode);
  if (contents === undefined) return { ...episode, ...judgement };
  return Object.assign(new Unread(episode, contents), judgement);
}

let contentsOf: (record: object) => Contents | undefined;

class Unread implements Episode {
  declare readonly format: Episode['format'];
  declare readonly id: string;
  declare readonly group: string;
  declare readonly taskId: string;
  declare readonly iteration: number;
  declare readonly rollout: number;
  declare readonly seed: string;
  declare readonly policy: string;
  declare readonly prompt: string;
  declare readonly forkedFrom?: NonNullable<Episode['forkedFrom']>;
  declare readonly steps: Episode['steps'];
  declare readonly segments: Episode['segments'];
  declare readonly stop: Episode['stop'];
  declare readonly stopDetail?: string;
  declare readonly failure?: NonNullable<Episode['failure']>;
  declare readonly final: string | null;
  declare readonly hash: string;
  readonly #contents: Contents;

  static {
    contentsOf = (record) => (#contents in record ? record.#contents : undefined);
  }

  /** Members in the order of all records: their JSON is compared byte by byte. */
  constructor(rest: Rest, contents: Contents) {
    this.#contents = contents;
    this.format = rest.format;
    this.id = rest.id;
    this.group = rest.group;
    this.taskId = rest.taskId;
    this.iteration = rest.iteration;
    this.rollout = rest.rollout;
    this.seed = rest.seed;
    this.policy = rest.policy;
    this.prompt = rest.prompt;
    if (rest.forkedFrom !== undefined) this.forkedFrom = rest.forkedFrom;
    // Of each object, for a getter of the class would be hidden from all that copies or writes a record.
    Object.defineProperty(this, 'steps', STEPS);
    Object.defineProperty(this, 'segments', SEGMENTS);
    this.stop = rest.stop;
    if (rest.stopDetail !== undefined) this.stopDetail = rest.stopDetail;
    if (rest.failure !== undefined) this.failure = rest.failure;
    this.final = rest.final;
    this.hash = rest.hash;
  }
}

const STEPS = getter('steps');
const SEGMENTS = getter('segments');

/** One function for all records, so that they have one shape. */
function getter(key: 'steps' | 'segments'): PropertyDescriptor & ThisType<Unread> {
  return {
    get() {
      return contentsOf(this)?.read()[key];
    },
    enumerable: true,
  };
}
