#!/usr/bin/env bash
# All that only a GPU can show, in under ten minutes, on a box with an NVIDIA driver, g++, pip and this repository after `npm ci`:
# the device, the conformance suite, replay against eager, figures at the bench sizes with utilisation, toy-lookup to its threshold.
# Writes into bench/results/gpu-check/ and a folder of its own; nothing system-wide, and no setting of the GPU is touched.
# Setting up fetches 3.4 GB and may take five of the ten minutes: on a slow link run `isogym setup cuda` before, and this with SETUP=0,
# which uses what is set up already. WHEELS=DIR takes the wheels from a folder. BACKEND=native tries the script
# itself without a GPU. The last line is `N passed, N failed`.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source .ci/checks.sh
export PATH="$PWD/node_modules/.bin:$PATH"
out=bench/results/gpu-check
mkdir -p "$out"
: "${BACKEND:=cuda}" "${SIZES:=0.4,6,30}"

# At most so many seconds for the next part, and never more than are left of ten minutes: one which hangs takes little from the others.
within() {
  local left=$((580 - SECONDS))
  echo $((left < 1 ? 1 : left < $1 ? left : $1))
}
if [ "${SETUP:-1}" = 1 ]; then
  export ISOGYM_HOME="$scratch/isogym"
  step "isogym setup $BACKEND" timeout "$(within 300)" npx --no-install isogym setup "$BACKEND" --yes ${WHEELS:+--wheels "$WHEELS"}
fi
npx --no-install isogym doctor --json >"$out/doctor.json"
step "auto takes $BACKEND" node -e '
  const { auto, backends } = JSON.parse(fs.readFileSync(process.argv[1], "utf8"));
  const found = backends.find(({ backend }) => backend === process.argv[2]);
  console.log(auto, found.device ?? found.reason);
  if (auto !== process.argv[2]) process.exit(1);
' "$out/doctor.json" "$BACKEND"

export ISOGYM_TEST_BACKEND="$BACKEND"
# Without TF32, which keeps ten bits: the tolerances are those of float32.
tests 'conformance, and replay against eager' env NVIDIA_TF32_OVERRIDE=0 timeout "$(within 200)" vitest run \
  test/policy/backends/native-conformance.test.ts "${NATIVE_TESTS[@]:1}"

# Utilisation is sampled while the bench runs; 0 % in most lines means that the GPU waits.
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=utilization.gpu,memory.used,power.draw --format=csv,noheader,nounits -l 1 >"$out/utilisation.csv" &
  sampler=$!
fi
bench_mode() {
  timeout "$(within "$1")" npx --no-install isogym bench train --json --backend "$BACKEND" --size "$SIZES" --seconds 1 --mode "$2" --decode "$3" >"$out/$4"
}
# 4096 rows: that up to some thousand a token costs the same is what the model on paper says first.
step 'bench train, replayed' bench_mode 90 replay 16,64,256,4096 bench.json
step 'bench train, eager' bench_mode 60 eager 16,64,256 eager.json
if [ -n "${sampler:-}" ]; then kill "$sampler"; fi
# Tokens/s, beside what the GPU should give on paper (docs/backends.md).
step 'the model on paper beside it' bash -c 'set -o pipefail; node bench/gpu-model.ts "$1/bench.json" | tee "$1/on-paper.txt"' _ "$out"

learns() {
  timeout "$(within 180)" npx --no-install isogym train --config toy-lookup.yaml --json backend="$BACKEND" "runs.dir=$scratch/runs" >"$out/toy-lookup.json" &&
    node -e '
      const { policies, wallSeconds } = JSON.parse(fs.readFileSync(process.argv[1], "utf8"));
      const { mean } = policies.find(({ name }) => name === "trained").success;
      console.log(`held-out success ${mean} after ${wallSeconds.toFixed(1)} s`);
      if (mean < 0.95) process.exit(1);
    ' "$out/toy-lookup.json"
}
step 'toy-lookup reaches 0.95' learns
# Two processes on one GPU: neither takes all of its memory.
beside() {
  timeout "$(within 90)" npx --no-install isogym train --config toy-lookup.yaml --json backend="$BACKEND" "runs.dir=$scratch/runs" \
    rollouts.staleness=1 iterations=10 warmStart.steps=50 evaluation.tasks=100 >"$out/staleness.json"
}
step 'rollouts beside a learner in a process of its own' beside
finish
