# Loads the service that test/clients/server.sh started, and measures it. Sourced by bench/http/run and
# bench/http/growth, which set program, work, results, seconds and beside.

run=0  # Measurements so far: each writes into partitions of its own.

# User and kernel time of the server so far, in ticks of 10 ms.
server_ticks() {
  [ -r "/proc/$server_pid/stat" ] || return 1
  sed 's/.*) //' "/proc/$server_pid/stat" | awk '{ print $12 + $13 }'
}

# Blocks that partita has read since its cache did not have them; nothing for Azurite.
server_misses() {
  [ "$TABLE_EXTRAS" != partita ] || curl -sS "http://127.0.0.1:$TABLE_ADMIN_PORT/metrics" |
    awk '/^partita_cache_misses_total / { print $2 }'
}

# Waits until the server has nothing left to do from before, such as merging what was loaded: until it is quiet for
# $2 seconds, at most $1.
settle() {
  local tries=${1:-60} quiet=${2:-1} left before after
  left=$quiet
  while [ $tries -gt 0 ]; do
    before=$(server_ticks) || return 1
    sleep 1
    after=$(server_ticks) || return 1
    left=$((after - before <= 2 ? left - 1 : quiet))
    [ $left -gt 0 ] || return 0
    tries=$((tries - 1))
  done
  echo "$0: the server still computes; what is measured next is beside that" >&2
}

# Reads entities of $1 over one connection until the server's files have stayed as they are for $3 seconds, at most $2.
# Bounds between ranges that a load had made are taken away a minute after it, one in ten seconds and only while
# something is asked; what the joined range has too much of on level 0 is then merged.
settle_files() {
  local tries=$2 left=$3 before='' after
  while [ $tries -gt 0 ] && [ $left -gt 0 ]; do
    LOAD_ROWS=$1 LOAD_RUN=$tries LOAD_KIND=point wrk -t 1 -c 1 -d 1s --timeout 30s -s bench/http/load.lua "$base" > /dev/null ||
      return 1
    after=$(curl -sS "http://127.0.0.1:$TABLE_ADMIN_PORT/metrics" | grep '^partita_level_files') || return 1
    if [ "$after" = "$before" ]; then left=$((left - 1)); else left=$3; fi
    before=$after
    tries=$((tries - 1))
  done
}

# Asks for what $1 says, between the path of the table and its token, and counts the entities.
rows_of() {
  curl -sS "$base$LOAD_PATH$1$LOAD_SAS" -H 'Accept: application/json;odata=nometadata' | grep -o '"RowKey"' | wc -l
}

# What wrk wrote is there, and one request of each kind that it read with has all that it asks for: no speed is
# reported for answers that lack rows. $1 kind, $2 rows.
check_answers() {
  local query rows least most
  case "$1" in
    # wrk throws its first request away, so the second partition is looked at: a page of it, or all.
    insert) query="()?\$filter=PartitionKey%20eq%20'w$LOAD_RUN-0-2'&" least=1 most=1000 ;;
    egt) query="()?\$filter=PartitionKey%20eq%20'e$LOAD_RUN-0-2'&" least=100 most=100 ;;
    point) query="(PartitionKey='p000000',RowKey='r007')?" least=1 most=1 ;;
    range)
      query="()?\$filter=PartitionKey%20eq%20'p000000'%20and%20RowKey%20ge%20'r000'%20and%20RowKey%20lt%20'r100'&"
      least=100 most=100 ;;
    filter)
      query="()?\$filter=PartitionKey%20eq%20'p000000'%20and%20Count%20ge%2010%20and%20Count%20lt%2020&"
      least=10 most=10 ;;
    # A page of a large table has part of them. Only rows of fill.py count: what was inserted may have Count 7, too.
    scan)
      query="()?\$filter=PartitionKey%20ge%20'p'%20and%20PartitionKey%20lt%20'q'"
      query="$query%20and%20(Count%20eq%207%20or%20RowKey%20eq%20'none')&"
      least=1 most=$((($2 + 999) / 1000)) ;;
  esac
  rows=$(rows_of "$query")
  [ "$rows" -ge "$least" ] && [ "$rows" -le "$most" ] ||
    { echo "$0: $1: $query has $rows rows, not $least to $most" >&2; return 1; }
}

# One measurement: $1 server, $2 rows, $3 kind, $4 connections. Where a request was refused or not answered, its figures
# are null: refusals are quick, and their time is in that of the others.
measure() {
  local threads=1 before after line misses
  [ "$4" -ge 16 ] && threads=2
  export LOAD_ROWS=$2 LOAD_RUN=$((++run))
  if [ -n "$beside" ]; then
    LOAD_KIND=$beside wrk -t 1 -c 1 -d "$((seconds + 1))s" --timeout 30s -s bench/http/load.lua "$base" > "$work/beside" 2>&1 &
    beside_pid=$!
  fi
  export LOAD_KIND=$3
  misses=$(server_misses)
  before=$(server_ticks)
  line=$(wrk -t "$threads" -c "$4" -d "${seconds}s" --timeout 30s -s bench/http/load.lua "$base" 2>&1 | grep '^RESULT')
  case "$3" in insert | egt) settle 20 ;; esac  # What it owes for them is theirs.
  after=$(server_ticks)
  [ -z "$misses" ] || misses=$(($(server_misses) - misses))
  if [ -n "$beside" ]; then
    wait "$beside_pid"
    sed -n "s/^RESULT/beside it, $beside:/p" "$work/beside"
  fi
  check_answers "$3" "$2" || return 1
  [ -n "$line" ] || { echo "$0: wrk gave no result for $*" >&2; return 1; }
  awk -v server="$1" -v rows="$2" -v kind="$3" -v connections="$4" -v ticks=$((after - before)) -v misses="${misses:-0}" -v hz="$(getconf CLK_TCK)" '
    { for (i = 2; i <= NF; i++) { split($i, pair, "="); v[pair[1]] = pair[2] } }
    END {
      n = v["requests"] > 0 ? v["requests"] : 1
      errors = v["errors"] + v["timeouts"]
      figures = sprintf("\"rate\":%.1f,\"cpu_us\":%.2f,\"p50_us\":%d,\"p99_us\":%d,\"misses\":%.3f",
        n / v["seconds"], ticks / hz * 1e6 / n, v["p50_us"], v["p99_us"], misses / n)
      if (errors > 0) gsub(/:[0-9.]+/, ":null", figures)
      printf "{\"server\":\"%s\",\"rows\":%d,\"kind\":\"%s\",\"connections\":%d,%s,\"requests\":%d,\"errors\":%d}\n",
        server, rows, kind, connections, figures, v["requests"], errors
    }' <<< "$line" | tee -a "$results"
}

# Says what wrk and fill.py go to: the server that was started last.
load_server() {
  base=${TABLE_ENDPOINT%/"$TABLE_ACCOUNT"}
  export LOAD_BASE=$base LOAD_PATH=/$TABLE_ACCOUNT/load LOAD_BATCH=/$TABLE_ACCOUNT/\$batch
  LOAD_SAS=$("$program" sas --permissions raud --expiry 1d) || return 1
  export LOAD_SAS
}

# Reads ranges of $1 entities for $2 seconds, so that a large cache has them.
warm_up() {
  [ "$2" -eq 0 ] || LOAD_ROWS=$1 LOAD_RUN=0 LOAD_KIND=range wrk -t 2 -c 16 -d "$2s" --timeout 30s \
    -s bench/http/load.lua "$base" > /dev/null
}
