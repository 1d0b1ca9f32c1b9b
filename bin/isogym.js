#!/usr/bin/env node
// Plain old JavaScript, so that a Node too old for isogym can read it and say what to do.
// In a checkout the TypeScript sources run as they are; the published package has them compiled.

// What isolates need from the beginning: see src/env/sandbox/isolated-vm.ts.
var FLAGS = ['--no-node-snapshot', '--no-incremental-marking'];

import('fs').then((fs) => {
  var checkout = fs.existsSync(new URL('../src/cli/main.ts', import.meta.url));
  var found = process.versions.node.split('.').map(Number);
  // 22.12 is the first that isogym's packages take, 22.18 the first that runs TypeScript without a flag.
  var needed = checkout ? [22, 18] : [22, 12];
  var message = `isogym needs Node ${needed.join('.')} or later, this is Node ${process.versions.node}`;
  var hint = checkout
    ? 'run `npm ci`, then `npx isogym ...` or `npm run isogym -- ...`, which use the Node that npm installed here.'
    : 'install Node 22 or 24, for example with `nvm install 22`.';
  if (found[0] < needed[0] || (found[0] === needed[0] && found[1] < needed[1])) {
    console.error(`${message}: ${hint}`);
    if (process.argv.includes('--json')) {
      console.log(JSON.stringify({ error: { code: 'NODE_TOO_OLD', message: message, hint: hint } }));
    }
    process.exitCode = 1;
    return;
  }
  if (!FLAGS.every((flag) => process.execArgv.includes(flag))) return beginAnew();
  return import(checkout ? '../src/cli/main.ts' : '../dist/cli/main.js').then((cli) => cli.main(process.argv.slice(2)));
});

// Worker threads have what their process began with, so the whole program begins anew: in this process's place where Node can
// do that, and else below it.
function beginAnew() {
  var args = FLAGS.concat(process.execArgv, process.argv.slice(1));
  if (process.execve && process.platform !== 'win32') {
    process.execve(process.execPath, [process.execPath].concat(args), process.env);
  }
  return import('child_process').then((children) => {
    var child = children.spawn(process.execPath, args, { stdio: 'inherit' });
    // A terminal sends Ctrl-C to both, and the child decides what it means; others reach this one alone.
    process.on('SIGINT', () => {});
    for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
    child.on('exit', (code, signal) => {
      process.exitCode = code === null ? 1 : code;
      if (signal === null) return;
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    });
  });
}
