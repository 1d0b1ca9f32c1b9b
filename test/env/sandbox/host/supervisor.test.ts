import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { encodeBytes, encodeFrame } from '../../../../src/env/sandbox/host/frames.ts';
import { HostSupervisor, type SupervisorOptions } from '../../../../src/env/sandbox/host/supervisor.ts';
import { collectGarbage } from '../../../fixtures/garbage.ts';

const service = new URL('./fixtures/service.ts', import.meta.url);
const limits: SupervisorOptions['limits'] = { residentMiB: 2000, graceMs: 100, outsideMs: 1500 };
const open: HostSupervisor[] = [];
afterEach(() => Promise.all(open.splice(0).map((supervisor) => supervisor.close())));

async function supervise(
  o: { readonly setup?: object; readonly residentMiB?: number; readonly recycleAfter?: number } = {},
) {
  const { setup = {}, residentMiB = limits.residentMiB, recycleAfter = 1000 } = o;
  const supervisor = new HostSupervisor({ service, setup, limits: { ...limits, residentMiB }, recycleAfter });
  open.push(supervisor);
  await supervisor.start();
  return supervisor;
}
const run = (supervisor: HostSupervisor, body: object, heard?: (said: unknown) => void) =>
  supervisor.run(body, { weight: 1, ...(heard === undefined ? {} : { heard }) });
const pidOf = (answer: unknown) => (answer as { result: { pid: number } }).result.pid;
const alive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('a task in a sandbox host', () => {
  it('has its result, which came from another process', async () => {
    const supervisor = await supervise({ setup: { a: 1 } });
    const answer = await run(supervisor, { do: 'echo' });
    expect(answer).toMatchObject({ result: { body: { do: 'echo' }, setup: { a: 1 } } });
    expect(supervisor.pids).toContain((answer as { result: { pid: number } }).result.pid);
    expect(supervisor.pids).not.toContain(process.pid);
  });

  it('that is wrong is an error of the caller, and the host serves on', async () => {
    const supervisor = await supervise();
    const error = await run(supervisor, { do: 'throw' }).catch((error) => error);
    expect(error).toMatchObject({ code: 'WRONG', message: 'the task is wrong', exitCode: 2 });
    expect(await run(supervisor, { do: 'echo' })).toHaveProperty('result');
  });

  it('can talk with its owner', async () => {
    const supervisor = await supervise();
    const said: unknown[] = [];
    const answer = await run(supervisor, { do: 'converse' }, (body) => {
      said.push(body);
      supervisor.say(said.length < 3 ? said.length : 'enough', { weight: 0 });
    });
    expect(answer).toEqual({ result: 'over' });
    expect(said).toEqual(['begin', { said: 1 }, { said: 2 }]);
  });

  it('can be cancelled while it is held up in synchronous work', async () => {
    const supervisor = await supervise();
    const running = run(supervisor, { do: 'until cancelled' });
    setImmediate(() => supervisor.cancel());
    expect(await running).toEqual({ result: 'cancelled' });
  });

  it('sees nothing of its owner\u2019s environment, writes no file and starts no process', async () => {
    const supervisor = await supervise();
    expect(await run(supervisor, { do: 'environment' })).toEqual({ result: { TZ: 'UTC', LC_ALL: 'C' } });
    for (const deed of ['write', 'spawn']) {
      expect((await run(supervisor, { do: deed }).catch((error) => error)).message).toContain('has been restricted');
    }
  });
});

describe('a host that fails is dead, says of what, and the next task has another', () => {
  const bytes = (buffer: Buffer) => buffer.toString('base64');
  const deep = encodeFrame({ kind: 'done', task: 1, body: '~' }).toString().slice(4);
  const text = deep.replace('"~"', '['.repeat(5000) + ']'.repeat(5000));
  const nested = Buffer.concat([Buffer.alloc(4), Buffer.from(text)]);
  nested.writeUInt32LE(text.length);
  const tooLong = Buffer.alloc(4);
  tooLong.writeUInt32LE(2 ** 30);
  it.each([
    ['a loop outside any bounded operation', { do: 'loop' }, 'hang', /ran past its 1500 ms/],
    ['a loop that ignores its own timeout', { do: 'bounded loop' }, 'hang', /ran past its 50 ms/],
    ['memory without end', { do: 'hoard' }, 'out-of-memory', /held more than 300 MiB/],
    ['an abort', { do: 'abort' }, 'died', /ended with SIGABRT/],
    ['an exit', { do: 'exit' }, 'died', /exit code 7/],
    [
      'a message that is no JSON',
      { do: 'frame', bytes: bytes(Buffer.from([2, 0, 0, 0, 0x7b, 0x7b])) },
      'untrusted',
      /JSON/,
    ],
    ['a message that says it is 1 GiB long', { do: 'frame', bytes: bytes(tooLong) }, 'untrusted', /at most/],
    [
      'a message of no known kind',
      { do: 'frame', bytes: bytes(encodeFrame({ kind: 'rm' })) },
      'untrusted',
      /task number/,
    ],
    // Which a thread can send, and the main one, whose stack is smaller, cannot receive: it would wait for it.
    ['a message that nests too deep', { do: 'frame', bytes: bytes(nested) }, 'untrusted', /at most 1000 levels/],
    ['a message that is no object', { do: 'frame', bytes: bytes(encodeFrame([])) }, 'untrusted', /an object/],
    [
      'bytes that belong to no answer',
      {
        do: 'frame',
        bytes: bytes(Buffer.concat([encodeBytes(Uint8Array.of(1)), encodeFrame({ kind: 'say', task: 1 })])),
      },
      'untrusted',
      /belong to/,
    ],
    ['an answer to a task that it was not given', { do: 'answer for another' }, 'untrusted', /about the task/],
  ] as const)('%s', async (_, task, kind, message) => {
    const supervisor = await supervise({ residentMiB: 300 });
    const { death } = (await run(supervisor, task)) as { death: { kind: string; message: string } };
    expect(death.kind).toBe(kind);
    expect(death.message).toMatch(message);
    expect(await run(supervisor, { do: 'echo' })).toHaveProperty('result');
  });

  it('an answer given twice counts once, and its host is not believed again', async () => {
    const supervisor = await supervise();
    const [liar] = supervisor.pids;
    expect(await run(supervisor, { do: 'answer twice' })).toEqual({ result: 'once' });
    // Its second word is read before or after the next task is given, which may be lost by it.
    await run(supervisor, { do: 'echo' });
    const { result } = (await run(supervisor, { do: 'echo' })) as { result: { pid: number } };
    expect(result.pid).not.toBe(liar);
  });
});

describe('tasks that are given together', () => {
  it('are done one after the other by one host, and each has its own answer', async () => {
    const supervisor = await supervise();
    const ended: number[] = [];
    const answers = await Promise.all(
      [1, 2, 3, 4].map(async (i) => {
        const answer = await run(supervisor, i === 3 ? { do: 'throw' } : { do: 'echo', i }).catch(
          (error) => error.code,
        );
        ended.push(i);
        return answer;
      }),
    );
    expect(ended).toEqual([1, 2, 3, 4]);
    expect(answers.map((answer) => answer.result?.body.i ?? answer)).toEqual([1, 2, 'WRONG', 4]);
    expect(new Set([0, 1, 3].map((i) => pidOf(answers[i]))).size).toBe(1);
  });

  it('do not begin before the one before them has ended', async () => {
    const supervisor = await supervise();
    const said: unknown[] = [];
    const first = run(supervisor, { do: 'converse' }, (body) => {
      said.push(body);
      if (said.length === 1) setTimeout(() => supervisor.say('enough', { weight: 0 }), 100);
    });
    const second = run(supervisor, { do: 'echo' }).then(() => said.push('second'));
    expect(await first).toEqual({ result: 'over' });
    said.push('over');
    await second;
    expect(said).toEqual(['begin', 'over', 'second']);
  });

  it('cost one alone where it takes the host down: those behind it are done by the next host', async () => {
    const supervisor = await supervise();
    const [first] = supervisor.pids;
    const answers = await Promise.all([
      run(supervisor, { do: 'echo' }),
      run(supervisor, { do: 'abort' }),
      run(supervisor, { do: 'echo' }),
      run(supervisor, { do: 'loop' }),
      run(supervisor, { do: 'echo' }),
    ]);
    expect(answers.map((answer) => ('death' in answer ? answer.death.kind : 'done'))).toEqual([
      'done',
      'died',
      'done',
      'hang',
      'done',
    ]);
    const pids = [0, 2, 4].map((i) => pidOf(answers[i]));
    expect(pids[0]).toBe(first);
    expect(new Set(pids).size).toBe(3);
  });

  it('are cancelled together', async () => {
    const supervisor = await supervise();
    const running = Promise.all([
      run(supervisor, { do: 'until cancelled' }),
      run(supervisor, { do: 'until cancelled' }),
    ]);
    setTimeout(() => supervisor.cancel(), 100);
    expect(await running).toEqual([{ result: 'cancelled' }, { result: 'cancelled' }]);
    const next = run(supervisor, { do: 'until cancelled' });
    setTimeout(() => supervisor.cancel(), 100);
    expect(await next).toEqual({ result: 'cancelled' });
  });

  it('wait for the next host where this one has served its time', async () => {
    const supervisor = await supervise({ recycleAfter: 2 });
    const answers = await Promise.all(Array.from({ length: 5 }, () => run(supervisor, { do: 'echo' })));
    expect(new Set(answers.map(pidOf)).size).toBe(3);
  });

  it('end with it when it is closed, and begin no other host', async () => {
    const supervisor = await supervise();
    await run(supervisor, { do: 'echo' });
    const { pids } = supervisor;
    const running = [run(supervisor, { do: 'loop' }), run(supervisor, { do: 'echo' })];
    await new Promise((resolve) => setTimeout(resolve, 100));
    await supervisor.close();
    for (const answer of await Promise.all(running)) expect(answer).toMatchObject({ death: { kind: 'died' } });
    expect(await run(supervisor, { do: 'echo' }).catch((error) => error.code)).toBe('HOST_FAILED');
    expect([...pids, ...supervisor.pids].map(alive)).toEqual([false, false]);
  });
});

it('an answer is kept by nobody but who asked for it', async () => {
  const supervisor = await supervise();
  const kept = await run(supervisor, { do: 'echo' }).then((answer) => new WeakRef(answer));
  await collectGarbage();
  expect(kept.deref()).toBeUndefined();
});

describe('the life of a host', () => {
  it('ends once it has served its time', async () => {
    const supervisor = await supervise({ recycleAfter: 2 });
    const pids: number[] = [];
    for (let i = 0; i < 5; i++) {
      pids.push(pidOf(await run(supervisor, { do: 'echo' })));
    }
    expect(new Set(pids).size).toBe(3);
    expect(pids[0]).toBe(pids[1]);
  });

  it('that much counts too which it was given in the midst of a task', async () => {
    const supervisor = await supervise({ recycleAfter: 3 });
    const before = pidOf(await run(supervisor, { do: 'echo' }));
    await run(supervisor, { do: 'converse' }, () => supervisor.say('enough', { weight: 1 }));
    expect(pidOf(await run(supervisor, { do: 'echo' }))).not.toBe(before);
  });

  it('ends with its owner, also where it is held up and the owner was killed', async () => {
    const owner = spawn(process.execPath, [fileURLToPath(new URL('./fixtures/owner.ts', import.meta.url))], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(owner.stdout.setEncoding('utf8'), 'data')) as [string];
    const pids = JSON.parse(line) as number[];
    expect(pids.map(alive)).toEqual([true, true]);
    owner.kill('SIGKILL');
    await once(owner, 'close');
    // Their ends are theirs: nobody else could wait for them.
    while (pids.some(alive)) await new Promise(setImmediate);
  });

  it('a service that does not start is an error with its own code; one that dies at its start is one too', async () => {
    expect(await supervise({ setup: { broken: 'throws' } }).catch((error) => error)).toMatchObject({
      code: 'BROKEN',
      hint: 'mend it',
      exitCode: 2,
    });
    const failed = await supervise({ setup: { broken: 'exits' } }).catch((error) => error);
    expect(failed).toMatchObject({ code: 'HOST_FAILED', message: expect.stringContaining('exit code 9') });
  });

  it('does not begin once its supervisor is closed, also where another one was still starting', async () => {
    const supervisor = await supervise();
    await supervisor.close();
    expect(await supervisor.start().catch((error) => error.message)).toBe('The sandbox host has been closed.');
    const starting = new HostSupervisor({ service, setup: {}, limits, recycleAfter: 1000 });
    open.push(starting);
    const refused = [starting.start(), run(starting, { do: 'echo' })].map((begun) => begun.catch((error) => error));
    // Its first host has been spawned.
    const { pids } = starting;
    expect(pids).toHaveLength(1);
    await starting.close();
    for (const error of await Promise.all(refused)) {
      expect(error).toMatchObject({ code: 'HOST_FAILED', message: 'The sandbox host has been closed.' });
    }
    expect(starting.pids).toEqual([]);
    expect(pids.map(alive)).toEqual([false]);
  });

  it('close leaves no process', async () => {
    const supervisor = await supervise();
    await run(supervisor, { do: 'echo' });
    const { pids } = supervisor;
    expect(pids).toHaveLength(2);
    await supervisor.close();
    expect(pids.map(alive)).toEqual([false, false]);
  });
});
