# The native backend, set up in a folder of this run's own. Sourced after checks.sh.

# What a user of this machine has set up is no part of a check.
export ISOGYM_HOME="$scratch/isogym"

# index_is_there: whether pip reaches a package index; any small package will do.
index_is_there() {
  python3 -m pip download --quiet --no-deps --no-cache-dir --disable-pip-version-check --dest "$scratch/probe" wheel >"$scratch/probe.log" 2>&1
}

# native_tests COMMAND…: sets native up and runs vitest as COMMAND with it; both fail loudly, and are skipped loudly only without an index.
native_tests() {
  if ! index_is_there; then
    printf '\n== native\nSKIPPED: pip reaches no package index, so neither isogym setup native nor what it brings was tried:\n'
    tail -2 "$scratch/probe.log"
    return
  fi
  step 'isogym setup native' npx --no-install isogym setup native --yes
  tests 'the native backend: conformance, and replay against eager' "$@"
}

# For every change: every operation against cpu, eagerly and replayed, and one replay of the training and of the decode step against eager.
NATIVE_SMOKE=(test/policy/backends/native-conformance.test.ts "${NATIVE_TESTS[@]:1:3}"
  -t 'TensorFlow computes what cpu does|a session|first step is the eager one|eager one under a grammar|records each shape once')
