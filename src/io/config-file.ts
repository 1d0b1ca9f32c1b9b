/** @module From a YAML file and `key.path=value` arguments to a config. All mistakes are reported at once, each at its place. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, extname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inputError, messageOf } from '../records/errors.ts';
import { nearest } from '../records/nearest.ts';
import { type Config, configSchema } from '../train/config.ts';
import { type ConfigProblem, didYouMean, problemsIn, type Where } from './config-problems.ts';
import { childOf } from './expectation.ts';
import { type ModuleKind, moduleProblem, resolveModulePath } from './modules.ts';
import { shownPath } from './paths.ts';
import { type Path, type Place, pathKey, readYaml, type Span } from './yaml-source.ts';

export interface ConfigSource {
  /** Absolute path; null where there were only arguments. */
  readonly file: string | null;
  readonly overrides: readonly string[];
}

export interface LoadedConfig {
  /** Every default filled in, the run's name too; modules that are paths are absolute. */
  readonly config: Config & { readonly name: string };
  readonly source: ConfigSource;
  readonly where: Where;
}

/** Configs are written by hand: more than this is another kind of file. */
const MAX_BYTES = 1 << 20;
/** More lines than these say nothing new. */
const MAX_MISTAKES = 200;
const PACKAGE_CONFIGS = fileURLToPath(new URL('../../configs/', import.meta.url));

/** Where a value came from: a place in the file, or the number of an argument. */
type Origin = { readonly span: Span } | { readonly argument: number };
type Mistake = {
  readonly where: string;
  readonly order: readonly number[];
  readonly path: Path;
  readonly text: string;
};

/**
 * A bare file name is looked for in `cwd`, then among the configs that come with isogym. Of two overrides of one key the later one wins.
 * @throws CONFIG_INVALID with a line `file:line:column path: expected …, found …` for each mistake
 * @throws CONFIG_NOT_FOUND
 */
export function loadConfig(options: {
  readonly file?: string;
  readonly overrides: readonly string[];
  readonly cwd: string;
}): LoadedConfig {
  const file = options.file === undefined ? null : findConfig(options.file, options.cwd);
  const draft = new Draft(file, options.cwd);
  options.overrides.forEach((override, i) => {
    draft.override(override, i + 1);
  });
  const config = draft.finish();
  return { config, source: { file, overrides: options.overrides }, where: draft.where };
}

function findConfig(file: string, cwd: string): string {
  const here = resolve(cwd, file);
  if (existsSync(here)) return here;
  const shipped = existsSync(PACKAGE_CONFIGS) ? readdirSync(PACKAGE_CONFIGS).filter((f) => f.endsWith('.yaml')) : [];
  if (basename(file) === file && shipped.includes(file)) return resolve(PACKAGE_CONFIGS, file);
  throw inputError(
    'CONFIG_NOT_FOUND',
    `expected a config file, found nothing at ${file}${didYouMean(nearest(basename(file), shipped))}`,
    basename(file) === file
      ? `Configs that come with isogym: ${shipped.join(', ')}`
      : 'A path is taken as it is; only a bare name is looked for among the configs that come with isogym.',
  );
}

function readText(file: string, shown: string): string {
  const refuse = (what: string) =>
    inputError(
      'CONFIG_INVALID',
      `${shown}: expected a YAML file, found ${what}`,
      'An example: isogym train --config toy-lookup.yaml --dry-run',
    );
  const stat = statSync(file);
  if (stat.isDirectory()) throw refuse('a folder');
  if (!stat.isFile()) throw refuse('something that is not a file');
  if (stat.size > MAX_BYTES) throw refuse(`${stat.size} bytes: a config has at most ${MAX_BYTES}`);
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw refuse(`one that cannot be read: ${messageOf(error)}`);
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (text.includes('\u0000')) throw refuse('a binary file');
    return text;
  } catch (error) {
    throw error instanceof TypeError ? refuse('bytes that are not UTF-8 text') : error;
  }
}

/** A config while it is put together: its data, where each value came from, and what is wrong so far. */
class Draft {
  private data: unknown = {};
  private readonly origins = new Map<string, Origin>();
  private readonly mistakes: Mistake[] = [];
  /** What the text itself has wrong: the schema need not say it again. */
  private readonly refused = new Set<string>();
  /** Where the file stops being YAML. */
  private readonly brokenAt: Place | undefined;
  private readonly shown: string;
  private readonly folder: string;
  private readonly file: string | null;
  private readonly cwd: string;

  constructor(file: string | null, cwd: string) {
    this.file = file;
    this.cwd = cwd;
    this.folder = file === null ? cwd : dirname(file);
    this.shown = file === null ? '' : shownPath(file, cwd);
    if (file === null) return;
    const source = readYaml(readText(file, this.shown));
    this.data = source.data;
    for (const [key, span] of source.spans) this.origins.set(key, { span });
    for (const p of source.problems) {
      this.report(p.path, p.text, p.place);
      if (p.path.length > 0) this.refused.add(pathKey(p.path));
    }
    if (source.broken) this.brokenAt = source.problems[0]?.place;
  }

  override(text: string, argument: number): void {
    const [, name, value] = /^([^=\s]+)=(.*)$/s.exec(text) ?? [];
    if (name === undefined || value === undefined) {
      const config = /\.ya?ml$/.test(text) ? didYouMean(`--config ${text}`) : '';
      this.report([], `expected key.path=value, found ${JSON.stringify(text)}${config}`, argument);
      return;
    }
    const path = name.split('.');
    if (path.some((part) => part === '' || part === '__proto__')) {
      this.report([], `expected key.path=value, found ${JSON.stringify(text)}`, argument);
      return;
    }
    const source = value.trim() === '' ? { data: null, problems: [] } : readYaml(value);
    for (const p of source.problems) this.report(path, p.text, argument);
    if (source.problems.length === 0) this.set(path, source.data, argument);
  }

  /** @throws CONFIG_INVALID */
  finish(): Config & { readonly name: string } {
    for (const problem of problemsIn(configSchema, this.data)) {
      const at = this.placeOf(problem.path, problem.about);
      // Behind a syntax error anything may be missing or misplaced.
      const doubtful = this.brokenAt !== undefined && (problem.about === 'missing' || !before(at, this.brokenAt));
      const told = problem.about === 'missing' && this.refused.has(pathKey(problem.path));
      if (!doubtful && !told) this.report(problem.path, problem.text, at);
    }
    const environment = this.module('environment');
    const verifier = this.module('verifier');
    if (this.mistakes.length === 0) {
      const { name = runName(this.file), ...config } = configSchema.parse(this.data);
      return {
        name,
        ...config,
        environment: { ...config.environment, module: environment },
        verifier: { ...config.verifier, module: verifier },
      };
    }
    const lines = this.mistakes
      .sort((a, b) => (a.order[0] ?? 0) - (b.order[0] ?? 0) || (a.order[1] ?? 0) - (b.order[1] ?? 0))
      .map(({ where, path, text }) => `${[where, path.join('.')].filter((part) => part !== '').join(' ')}: ${text}`);
    const more = lines.splice(MAX_MISTAKES).length;
    if (more > 0) lines.push(`… and ${more} more`);
    throw inputError('CONFIG_INVALID', lines.join('\n'), 'Every key is described in docs/configuration.md.');
  }

  private set(path: readonly string[], value: unknown, argument: number): void {
    const root = isSection(this.data) ? this.data : {};
    this.data = root;
    let section = root;
    path.slice(0, -1).forEach((part, i) => {
      const child = Object.hasOwn(section, part) ? section[part] : undefined;
      if (isSection(child)) {
        section = child;
        return;
      }
      const made: Record<string, unknown> = {};
      section[part] = made;
      section = made;
      this.claim(path.slice(0, i + 1), argument);
    });
    section[path.at(-1) ?? ''] = value;
    this.claim(path, argument);
  }

  /** From here on everything at and under `path` comes from this argument. */
  private claim(path: Path, argument: number): void {
    const under = `${pathKey(path).slice(0, -1)},`;
    for (const key of this.origins.keys()) if (key.startsWith(under)) this.origins.delete(key);
    this.origins.set(pathKey(path), { argument });
  }

  /** The origin of the nearest part of the path that was written somewhere. */
  private originOf(path: Path): Origin {
    for (let length = path.length; length >= 0; length--) {
      const origin = this.origins.get(pathKey(path.slice(0, length)));
      if (origin !== undefined) return origin;
    }
    return { argument: 0 };
  }

  readonly where: Where = (path, about) => this.show(this.placeOf(path, about));

  private placeOf(path: Path, about: ConfigProblem['about']): Place | number {
    const origin = this.originOf(path);
    return 'span' in origin ? origin.span[about === 'value' ? 'value' : 'key'] : origin.argument;
  }

  private show(at: Place | number): string {
    if (typeof at === 'number') return at === 0 ? 'arguments' : `argument ${at}`;
    return `${this.shown}:${at.line}:${at.column}`;
  }

  private report(path: Path, text: string, at: Place | number): void {
    const order = typeof at === 'number' ? [Number.POSITIVE_INFINITY, at] : [at.line, at.column];
    this.mistakes.push({ where: this.show(at), order, path, text });
  }

  /** A module's path made absolute from the place that names it; reported where there is none. */
  private module(kind: ModuleKind): string {
    const path = [kind, 'module'];
    const written = path.reduce<unknown>(childOf, this.data);
    if (typeof written !== 'string' || written === '') return '';
    const origin = this.originOf(path);
    const module = resolveModulePath(written, 'span' in origin ? this.folder : this.cwd);
    const problem = moduleProblem(kind, module, written);
    if (problem !== undefined) this.report(path, problem, 'span' in origin ? origin.span.value : origin.argument);
    return module;
  }
}

function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function before(at: Place | number, limit: Place): boolean {
  return typeof at === 'number' || at.line < limit.line || (at.line === limit.line && at.column < limit.column);
}

/** The config file's name without its ending, as a folder name. */
function runName(file: string | null): string {
  const stem = file === null ? '' : basename(file, extname(file));
  return (
    stem
      .replace(/[^A-Za-z0-9._-]/g, '-')
      .replace(/^[^A-Za-z0-9]+/, '')
      .slice(0, 100) || 'run'
  );
}
