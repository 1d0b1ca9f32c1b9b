# Counting of checks, for .ci/run, .ci/full and bench/gpu-check.sh. Sourced in the repository's root.
passed=0
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# step NAME COMMAND…: one check.
step() {
  local name=$1
  shift
  printf '\n== %s\n' "$name"
  if "$@"; then
    passed=$((passed + 1))
  else
    printf 'FAILED: %s\n' "$name"
    failed=$((failed + 1))
  fi
}

# tests NAME COMMAND…: as many checks as vitest counts; COMMAND takes vitest's options at its end.
tests() {
  local name=$1 report="$scratch/vitest.json" status=0 counts
  shift
  printf '\n== %s\n' "$name"
  rm -f "$report"
  "$@" --reporter=default --reporter=json --outputFile.json="$report" || status=$?
  counts=$(node -e '
    const { numPassedTests, numFailedTests } = JSON.parse(fs.readFileSync(process.argv[1], "utf8"));
    console.log(numPassedTests, numFailedTests);
  ' "$report" 2>/dev/null) || counts='0 0'
  add "$name" "$status" $counts
}

# tests_of_script NAME COMMAND…: as many checks as its last line, `N passed, N failed`, says.
tests_of_script() {
  local name=$1 output="$scratch/output" status=0 counts
  shift
  printf '\n== %s\n' "$name"
  "$@" | tee "$output"
  status=${PIPESTATUS[0]}
  counts=$(sed -n '$ s/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed$/\1 \2/p' "$output")
  add "$name" "$status" ${counts:-0 0}
}

# A command that failed without a failed check, or that checked nothing, is one failed check.
add() {
  local name=$1 status=$2 good=$3 bad=$4
  if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$good" -eq 0 ]; }; then bad=1; fi
  if [ "$bad" -gt 0 ]; then printf 'FAILED: %s\n' "$name"; fi
  passed=$((passed + good))
  failed=$((failed + bad))
}

finish() {
  printf '\n%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" -eq 0 ]
}

# What runs TensorFlow's C library, on the CPU or on a GPU.
NATIVE_TESTS=(test/policy/backends test/policy/replay test/policy/generate/replayed.test.ts test/policy/transformer test/train/replayed-steps.test.ts test/train/handles.test.ts test/train/remote-steps.test.ts)
