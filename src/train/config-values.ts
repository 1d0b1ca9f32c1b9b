/** @module The kinds of numbers that a config holds, and how far they go. */
import { z } from 'zod';

export const count = z.int().min(1);
export const natural = z.int().min(0);
/** Counts of what is held in memory at once: more is a slip of the finger, and would end in a process that is killed for its memory. */
export const MAX_TASKS = 1_000_000;
export const MAX_ROLLOUTS = 100_000;
export const rollouts = count.max(MAX_ROLLOUTS);
export const share = z.number().min(0).max(1);
/** Beyond these, numbers of 32 bits overflow or vanish: weights would be no numbers, some iterations after the mistake. */
export const MAX_RATE = 1000;
export const MAX_COEFFICIENT = 1e6;
export const rate = z.number().gt(0).max(MAX_RATE);
export const coefficient = z.number().min(0).max(MAX_COEFFICIENT);
