# Counts test results for test/run from the programs' own output. Sourced, not run.

passed=0
failed=0
skipped=0
failures=()

count_pass() {
  passed=$((passed + 1))
  printf '   %-34s passed\n' "$1"
}

count_failure() {
  failed=$((failed + 1))
  failures+=("$1")
  printf '   FAILED: %s\n' "$1"
}

report_failures() {
  [ ${#failures[@]} -eq 0 ] && return
  printf '== failed:\n'
  printf '   %s\n' "${failures[@]}"
}

# Every entry must give a reason.
check_skips_file() {
  local name reason
  while read -r name reason; do
    case "$name" in "" | \#*) continue ;; esac
    [ -n "$reason" ] || count_failure "$1: $name is listed without a reason"
  done < "$1"
}

# True if test/skips.txt lists the test $1, by name or by a name ending in *.
skip_is_listed() {
  local name reason
  while read -r name reason; do
    case "$name" in "" | \#*) continue ;; esac
    # Unquoted on purpose: a trailing * is a pattern.
    # shellcheck disable=SC2053
    [[ $1 == $name ]] && return 0
  done < test/skips.txt
  return 1
}

# The names on lines such as `[  FAILED  ] Suite.Name (3 ms)`; $1 is the word, $2 the log.
names_marked() {
  sed -n "s/^.*\[  $1 *\] \([^ ,]*\).* ([0-9]* ms)\$/\1/p" "$2"
}

# The number on the summary line `[  PASSED  ] 12 tests.`; 0 without one.
number_marked() {
  local number
  number=$(sed -n "s/^\[  $1 *\] \([0-9]*\) tests\{0,1\}[.,].*\$/\1/p" "$2" | tail -n 1)
  echo "${number:-0}"
}

# Prints what a failed test printed, from its RUN line on; at most 60 lines.
show_test() {
  awk -v run="[ RUN      ] $1" '$0 == run { on = 1 } on { print "   | " $0; if (++n >= 60) exit }
    on && /\[  FAILED  \]/ { exit }' "$2"
}

# A gtest program: its tests one by one; a crash, a timeout or a lost summary is one more failure.
count_gtest() {
  local preset=$1 program=$2 log=$3 rc seconds name
  read -r rc seconds < "$log.rc"
  local ok=0 bad=0 skip=0 complete=false
  if grep -q '^\[==========\] [0-9]* tests\{0,1\} from .* ran\.' "$log"; then
    complete=true
    ok=$(number_marked PASSED "$log")
    skip=$(number_marked SKIPPED "$log")
  else
    ok=$(grep -c '^.*\[       OK \] .* ([0-9]* ms)$' "$log")
    skip=$(names_marked SKIPPED "$log" | wc -l)
  fi
  passed=$((passed + ok))

  local failed_names skipped_names
  failed_names=$(names_marked FAILED "$log" | sort -u)
  skipped_names=$(names_marked SKIPPED "$log" | sort -u)
  printf '   %-6s %-18s %5d passed %6s s\n' "$preset" "$program" "$ok" "$seconds"
  for name in $failed_names; do
    bad=$((bad + 1))
    show_test "$name" "$log"
    count_failure "$preset $program $name"
  done
  for name in $skipped_names; do
    if skip_is_listed "$name"; then
      skipped=$((skipped + 1))
    else
      count_failure "$preset $program $name was skipped, and test/skips.txt does not list it: $(skip_reason "$name" "$log")"
    fi
  done
  if ! $complete || { [ "$rc" -ne 0 ] && [ $bad -eq 0 ]; }; then
    tail -n 60 "$log" | sed 's/^/   | /'
    count_failure "$preset $program ended with exit code $rc while running $(last_running "$log"); whole log: $log"
  fi
  local disabled
  disabled=$(sed -n 's/^ *YOU HAVE \([0-9]*\) DISABLED TEST.*/\1/p' "$log")
  [ -n "$disabled" ] && count_failure "$preset $program has $disabled DISABLED_ tests; use GTEST_SKIP and test/skips.txt"
  return 0
}

skip_reason() {
  grep -A 3 -F "[ RUN      ] $1" "$2" | grep -i 'skip' | grep -v '^\[' | head -n 1
}

last_running() {
  sed -n 's/^.*\[ RUN      \] //p' "$1" | tail -n 1
}

# A fuzz target: one test, passed if it ran its time without a finding.
count_fuzz() {
  local preset=$1 program=$2 log=$3 rc seconds
  read -r rc seconds < "$log.rc"
  if [ "$rc" -eq 0 ]; then
    count_pass "$program ($(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, $seconds s)"
  else
    tail -n 40 "$log" | sed 's/^/   | /'
    count_failure "$program found an input that breaks it; kept in ${log%/*}/$program/"
  fi
}

# Likewise what run_program ran: preset, name, log.
count_runner() {
  local rc
  read -r rc _ < "$3.rc"
  count_program "$2" "$rc" "$3"
}

# A program that is one test: exit code 0 passed, 77 skipped, with the reason on the log's last line.
count_program() {
  local name=$1 rc=$2 log=$3
  if [ "$rc" -eq 0 ]; then
    count_pass "$name"
  elif [ "$rc" -ne 77 ]; then
    tail -n 40 "$log" | sed 's/^/   | /'
    count_failure "$name ended with exit code $rc; whole log: $log"
  elif skip_is_listed "$name"; then
    skipped=$((skipped + 1))
    printf '   %-34s skipped: %s\n' "$name" "$(tail -n 1 "$log")"
  else
    count_failure "$name was skipped, and test/skips.txt does not list it: $(tail -n 1 "$log")"
  fi
}

# A script that prints `PASS name` and `FAIL name` lines.
count_lines() {
  local what=$1 rc=$2 log=$3 line
  local before=$failed
  while read -r line; do
    case "$line" in
      "PASS "*) count_pass "$what: ${line#PASS }" ;;
      "FAIL "*) count_failure "$what: ${line#FAIL }" ;;
    esac
  done < "$log"
  if [ "$rc" -ne 0 ] || [ "$failed" -gt "$before" ]; then tail -n 60 "$log" | sed 's/^/   | /'; fi
  [ "$rc" -eq 0 ] || [ "$failed" -gt "$before" ] || count_failure "$what ended with exit code $rc; whole log: $log"
}
