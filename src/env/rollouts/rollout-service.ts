/** @module Rollouts in a sandbox host: the episode loop, with the policies that act beside it, outside the isolates and in a process of its own. */

import type { HostService, StartService } from '../sandbox/host/main.ts';
import { RolloutRunner } from './rollout-runner.ts';
import { type InsideSpec, type RolloutSetup, readRequests } from './rollouts.ts';
import { converseOver } from './talk.ts';
import type { ToWorker } from './work.ts';

export interface RolloutServiceSetup {
  readonly setup: RolloutSetup;
  /** The bundled world. */
  readonly script: string;
}

/** JSON has no typed arrays: a table travels as numbers. */
export type WrittenSpec =
  | Exclude<InsideSpec, { readonly kind: 'tabular' }>
  | (Omit<Extract<InsideSpec, { readonly kind: 'tabular' }>, 'table'> & { readonly table: readonly number[] });

/** `cancelled`: before it began. */
export type RolloutTask =
  | {
      /** Its requests come beside it, as UTF-8: see `writeRequests`. */
      readonly kind: 'act';
      readonly packed: boolean;
      readonly policy: WrittenSpec;
      readonly cancelled: boolean;
    }
  | {
      /** Its episodes are told to begin one by one: see `ToWorker`. */
      readonly kind: 'converse';
      readonly name: string;
      readonly version: number;
      readonly cancelled: boolean;
    };

export function writeSpec(policy: InsideSpec): WrittenSpec {
  return policy.kind === 'tabular' ? { ...policy, table: Array.from(policy.table) } : policy;
}

function readSpec(policy: WrittenSpec): InsideSpec {
  return policy.kind === 'tabular' ? { ...policy, table: Float32Array.from(policy.table) } : policy;
}

const start: StartService = async ({ setup, script }: RolloutServiceSetup): Promise<HostService> => {
  const runner = await RolloutRunner.create(setup, script);
  return {
    async run(body, { say, heard, bytes = new Uint8Array(), signal: later }) {
      const task = body as RolloutTask;
      const signal = task.cancelled ? { aborted: true } : later;
      if (task.kind === 'act') {
        const requests = readRequests(Buffer.from(bytes).toString('utf8'));
        const spec = readSpec(task.policy);
        return task.packed ? runner.actPacked(requests, spec, signal) : runner.act(requests, spec, signal);
      }
      const channel = {
        post: say,
        heard: (listener: (messages: ToWorker) => void) => heard((said) => listener(said as ToWorker)),
      };
      await converseOver(channel, runner, task, signal);
      return [];
    },
  };
};

export default start;
