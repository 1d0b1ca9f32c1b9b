/** @module Time that this process and the processes it started have computed: on a busy machine it says more than the clock. */
import { readdirSync, readFileSync } from 'node:fs';

/** Ticks a second in /proc, the same on all Linux that Node runs on. */
const TICKS = 100;

/** Of all threads of this process and of its children, those that have ended included [ms]. On systems other than Linux children are not seen. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  const living = children().reduce((sum, pid) => {
    const { own, ended } = cpuMsOf(pid);
    return sum + own + ended;
  }, 0);
  return (user + system) / 1000 + living + cpuMsOf('self').ended;
}

/** The process ids of the living children of this process; none on systems other than Linux. */
export function children(): readonly string[] {
  if (process.platform !== 'linux') return [];
  // A thread's children are listed with the thread that started them, and a thread may end while it is looked at.
  return readdirSync('/proc/self/task').flatMap((thread) =>
    textOf(`/proc/self/task/${thread}/children`).split(' ').filter(Boolean),
  );
}

/** @returns its own, and that of its children that have ended and been waited for [ms]; 0 for what is gone */
function cpuMsOf(pid: string): { readonly own: number; readonly ended: number } {
  // The name, in parentheses, may hold anything; utime, stime, cutime and cstime are the 12th to 15th fields after it.
  const fields = textOf(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? [];
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15).map(Number);
  return { own: ((utime + stime) * 1000) / TICKS, ended: ((cutime + cstime) * 1000) / TICKS };
}

/** Nothing where a process or thread has ended meanwhile. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
