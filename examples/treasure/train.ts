/** @module Training from code, on an environment and a verifier of one's own. */
import { fileURLToPath } from 'node:url';
import { loadConfig, train } from 'isogym';

const { config } = loadConfig({
  file: fileURLToPath(new URL('./config.yaml', import.meta.url)),
  overrides: process.argv.slice(2),
  cwd: process.cwd(),
});
const outcome = await train({ config, reporter: { note: console.log, progress: () => undefined } });
if (!outcome.interrupted) {
  for (const { name, success, sampledSuccess, steps } of outcome.summary.policies) {
    const figures = [success, sampledSuccess, steps].map(({ mean }) => mean.toFixed(2));
    console.log(`${name}: success ${figures[0]} greedy, ${figures[1]} sampled, ${figures[2]} steps`);
  }
}
