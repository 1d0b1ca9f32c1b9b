/** @module What to do about a module of a user's that Node cannot import as it stands. */

/** @param cause what `import()` threw */
export function importHint(cause: unknown): { readonly hint?: string } {
  const { code, message } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION') {
    return { hint: `Node runs TypeScript as it stands from 22.18 on; this is ${process.version}.` };
  }
  const name = code === 'ERR_MODULE_NOT_FOUND' && /^Cannot find package '([^']+)'/.exec(String(message))?.[1];
  if (!name) return {};
  // isogym is installed from its own tarball: a clone makes it.
  const what =
    name === 'isogym' ? 'PATH/TO/isogym.tgz    (the tarball: npm run pack:package in a clone of isogym)' : name;
  return { hint: `In the module's folder, or one above it: npm install ${what}` };
}
