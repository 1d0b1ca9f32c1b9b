/** @module JSON values, as they cross the line into an isolate, between threads and onto disk. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };
