/** @module The batcher: which episodes are live, and who joins the batch of a token policy at which tick. Tokens alone decide it, unless a clock is told to. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TokenPolicy, TokenReply, TokenRequest } from '../../policy/token-policy.ts';
import { IsogymError, inputError } from '../../records/errors.ts';
import type { Halt, Schedule } from './schedule.ts';
import { BatchTally, DEFAULT_SCHEDULE } from './schedule.ts';

/** What an episode is answered: tokens, or that it is over. */
export type TokenAnswer = TokenReply | Halt;

/** What the batcher knows of an episode. */
export interface Member {
  readonly id: string;
  readonly group: string;
}

interface Waiting {
  readonly request: TokenRequest;
  readonly resolve: (answer: TokenAnswer) => void;
  readonly reject: (error: unknown) => void;
}

const SUSPENDED: Halt = { halt: 'suspended', detail: 'the iteration was over' };

/** The share of a batch's rows that have left when others join: joining costs a step of its own and a copy of the caches. */
const ROOM = 1 / 4;

/**
 * An action that is finished goes to its episode at once, and the batch goes on without it. When enough rows have left, those
 * who owe a request are waited for (an environment answers in microseconds), queued episodes take the places of those that have
 * ended, and all who wait join, in the order of the requests. So neither the number of workers nor who is faster changes a
 * batch; a throughput schedule gives that up and lets join who is ready. Caches of those that have ended are freed before others join.
 */
export class Batcher {
  readonly #policy: TokenPolicy;
  readonly #schedule: Schedule;
  readonly #members: ReadonlyMap<string, Member & { readonly order: number }>;
  readonly #begin: ReadonlyMap<string, PromiseWithResolvers<void>>;
  #queue: string[];
  /** Begun and not ended: the tick and the time that they began at. */
  readonly #live = new Map<string, { readonly tick: number; readonly ms: number }>();
  readonly #asked = new Map<string, Waiting>();
  /** In the policy's batch. */
  readonly #writing = new Map<string, Waiting>();
  /** Those that are told to stop when they next ask. */
  readonly #halts = new Map<string, Halt>();
  /** Usable episodes of each group that have ended. */
  readonly #finished = new Map<string, number>();
  /** Groups of which enough have, whose others have not been told yet. */
  readonly #full = new Set<string>();
  /** Ended. */
  readonly #over = new Set<string>();
  /** Those of each group that have not ended. */
  readonly #left = new Map<string, number>();
  /** A group has ended whole. */
  #complete = false;
  /** Nobody joins any more. */
  #closed = false;
  #abandoned: { readonly error: unknown } | undefined;
  readonly #tally: BatchTally;
  /** Rows in the batch when it was last joined. */
  #rows = 0;
  #ended: string[] = [];
  #change = Promise.withResolvers<void>();

  /** @param members in the order of the requests. @throws DUPLICATE_EPISODE */
  constructor(policy: TokenPolicy, members: readonly Member[], schedule: Schedule = DEFAULT_SCHEDULE) {
    this.#policy = policy;
    this.#schedule = schedule;
    this.#members = new Map(members.map(({ id, group }, order) => [id, { id, group, order }]));
    this.#begin = new Map(members.map(({ id }) => [id, Promise.withResolvers<void>()]));
    this.#queue = members.map(({ id }) => id);
    for (const { group } of members) this.#left.set(group, (this.#left.get(group) ?? 0) + 1);
    this.#tally = new BatchTally(schedule, members.length);
    if (this.#members.size < members.length) {
      const twice = members.find(({ id }, i) => this.#members.get(id)?.order !== i)?.id;
      throw inputError('DUPLICATE_EPISODE', `expected a different id for each request, found ${twice} twice`);
    }
  }

  /** Resolves when there is room for the episode. */
  begun(episodeId: string): Promise<void> {
    return this.#begin.get(episodeId)?.promise ?? Promise.resolve();
  }

  hasBegun(episodeId: string): boolean {
    return !this.#queue.includes(episodeId);
  }

  /** Waits for the tick that finishes the answer. Rejects where the policy fails, and where the episode may not ask: it has not begun, has ended, or waits for an answer already. */
  ask(request: TokenRequest): Promise<TokenAnswer> {
    const { episodeId } = request;
    if (this.#abandoned !== undefined) return Promise.reject(this.#abandoned.error);
    const halt = this.#halts.get(episodeId) ?? (this.#closed ? SUSPENDED : undefined);
    if (halt !== undefined) return Promise.resolve(halt);
    if (!this.#live.has(episodeId) || this.#asked.has(episodeId) || this.#writing.has(episodeId)) {
      // The others are waited for by their number, which such a one would put wrong for good.
      const found = this.#live.has(episodeId) ? 'a second one' : 'one while it does not live';
      return Promise.reject(
        new IsogymError('INTERNAL', `episode ${episodeId}: expected one question at a time, found ${found}`),
      );
    }
    return new Promise((resolve, reject) => {
      this.#asked.set(episodeId, { request, resolve, reject });
      this.#change.resolve();
    });
  }

  /** The run is over for a reason that lies outside its episodes: nobody is answered any more, whoever asks is told the error, and `run` ends. */
  abandon(error: unknown): void {
    if (this.#abandoned !== undefined) return;
    this.#abandoned = { error };
    for (const { reject } of [...this.#asked.values(), ...this.#writing.values()]) reject(error);
    this.#asked.clear();
    this.#writing.clear();
    for (const { resolve } of this.#begin.values()) resolve();
    this.#change.resolve();
  }

  /** The episode asks no more. What it still waits for, because its worker died, is never answered. */
  end(episodeId: string, usable: boolean): void {
    if (this.#over.has(episodeId)) return;
    this.#over.add(episodeId);
    this.#change.resolve();
    const group = this.#members.get(episodeId)?.group ?? '';
    const left = (this.#left.get(group) ?? 0) - 1;
    this.#left.set(group, left);
    this.#complete ||= left === 0 && !this.#closed;
    if (!this.#live.delete(episodeId)) {
      this.#queue = this.#queue.filter((id) => id !== episodeId);
      return;
    }
    this.#asked.delete(episodeId);
    this.#writing.delete(episodeId);
    this.#ended.push(episodeId);
    if (!usable) return;
    const finished = (this.#finished.get(group) ?? 0) + 1;
    this.#finished.set(group, finished);
    if (finished === this.#schedule.enough) this.#full.add(group);
  }

  /** Until every episode has ended, or the run is abandoned. */
  async run(): Promise<void> {
    const ready = this.#schedule.throughput !== undefined;
    for (;;) {
      let joining: readonly Waiting[] = [];
      if (ready || this.#hasRoom()) {
        await this.#tally.waiting(() => (ready ? this.#someone() : this.#settle()));
        if (this.#abandoned !== undefined) break;
        joining = [...this.#asked.values()].sort((a, b) => this.#byOrder(a.request.episodeId, b.request.episodeId));
        this.#release();
        if (this.#live.size === 0) break;
        this.#rows = joining.length + this.#writing.size;
      }
      await this.#tick(joining);
      if (this.#abandoned !== undefined) break;
      this.#haltTheLate();
      // Messages, Ctrl-C and the terminal get their turn.
      await nextTurn();
    }
    if (this.#abandoned !== undefined) this.#policy.release([...this.#members.keys()]);
    else this.#schedule.observe?.(this.#tally.figures());
  }

  #hasRoom(): boolean {
    return this.#writing.size === 0 || this.#rows - this.#writing.size >= ROOM * this.#rows;
  }

  /** Until everyone who lives is in the batch or asks to be, and nobody is queued who could live. */
  async #settle(): Promise<void> {
    while (this.#abandoned === undefined) {
      this.#beginNext();
      if (this.#asked.size + this.#writing.size === this.#live.size) {
        if (!this.#haltStragglers() && !this.#close()) return;
        continue;
      }
      await this.#change.promise;
      this.#change = Promise.withResolvers();
    }
  }

  /** Until there is anything to do at all. */
  async #someone(): Promise<void> {
    while (this.#abandoned === undefined) {
      this.#haltStragglers();
      this.#close();
      this.#beginNext();
      if (this.#asked.size + this.#writing.size > 0 || this.#live.size === 0) return;
      await this.#change.promise;
      this.#change = Promise.withResolvers();
    }
  }

  #beginNext(): void {
    while (this.#live.size < this.#schedule.live) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      this.#live.set(next, { tick: this.#tally.ticks, ms: this.#schedule.now?.() ?? 0 });
      this.#begin.get(next)?.resolve();
    }
  }

  async #tick(joining: readonly Waiting[]): Promise<void> {
    for (const waiting of joining) {
      this.#asked.delete(waiting.request.episodeId);
      this.#writing.set(waiting.request.episodeId, waiting);
    }
    const rows = this.#writing.size;
    try {
      const requests = joining.map(({ request }) => request);
      for (const { episodeId, reply } of await this.#tally.tick(rows, this.#queue.length === 0, () =>
        this.#policy.tick(requests),
      )) {
        const waiting = this.#writing.get(episodeId);
        if (waiting === undefined && this.#live.has(episodeId)) {
          throw new IsogymError('POLICY_REPLY', `expected a reply to who had asked, found one to ${episodeId}`);
        }
        this.#writing.delete(episodeId);
        waiting?.resolve(reply);
      }
    } catch (error) {
      for (const waiting of this.#writing.values()) waiting.reject(error);
      this.#writing.clear();
    }
  }

  /** Groups of which enough have finished: their others are told to stop. Whether there were any to tell. */
  #haltStragglers(): boolean {
    if (this.#full.size === 0) return false;
    const stragglers = [...this.#members.values()].filter(
      ({ id, group }) => this.#full.has(group) && !this.#over.has(id),
    );
    for (const { id, group } of stragglers) {
      const detail = `${this.#finished.get(group)} of its group had finished, and ${this.#schedule.enough} were enough`;
      this.#halt(id, { halt: 'straggler', detail });
    }
    this.#full.clear();
    return stragglers.length > 0;
  }

  /** Where the budget is spent: who waits to join is suspended, and so is who asks later. Whether anybody was. */
  #close(): boolean {
    const { budget } = this.#schedule;
    if (this.#closed || budget === undefined || !this.#complete || this.#tally.ticks < budget) return false;
    this.#closed = true;
    const waiting = [...this.#asked.keys()];
    for (const id of waiting) this.#halt(id, SUSPENDED);
    return waiting.length > 0;
  }

  #haltTheLate(): void {
    const { deadline, throughput, now } = this.#schedule;
    if (deadline !== undefined) {
      for (const [id, { tick }] of this.#live) {
        if (this.#tally.ticks - tick < deadline || this.#halts.has(id)) continue;
        this.#halt(id, { halt: 'deadline', detail: `it was live for ${deadline} ticks` });
      }
    }
    if (throughput?.deadlineMs === undefined || now === undefined) return;
    const time = now();
    for (const [id, { ms }] of this.#live) {
      if (time - ms < throughput.deadlineMs || this.#halts.has(id)) continue;
      this.#halt(id, { halt: 'late', detail: `it was live for ${throughput.deadlineMs / 1000} s` });
    }
  }

  /** What was being written for it is given up. One that owes a request is told when it asks. */
  #halt(id: string, halt: Halt): void {
    this.#halts.set(id, halt);
    const waiting = this.#asked.get(id) ?? this.#writing.get(id);
    this.#asked.delete(id);
    if (this.#writing.delete(id)) this.#policy.release([id]);
    waiting?.resolve(halt);
  }

  #release(): void {
    if (this.#ended.length > 0) this.#policy.release(this.#ended.sort((a, b) => this.#byOrder(a, b)));
    this.#ended = [];
  }

  #byOrder(a: string, b: string): number {
    return (this.#members.get(a)?.order ?? 0) - (this.#members.get(b)?.order ?? 0);
  }
}
