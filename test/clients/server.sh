# Starts and stops the services that test/clients, bench/http and api/run talk to. Sourced, not run.
#
# After a start the environment names the server as test/clients/case_report.py tells; server_pid is its
# process, and WORK/server.log what it printed.

server_pid=
server_settings=  # A settings file for partita, if any.
server_memory=512M  # partita's.
server_access_log=yes  # Whether partita keeps one, WORK/access.log; empty: no.

# Puts the npm packages of test/clients/javascript into DIR, unless the same ones are there.
install_modules() {
  local dir=$1 here=test/clients/javascript
  cmp -s "$here/package-lock.json" "$dir/package-lock.json" && [ -d "$dir/node_modules/.ready" ] && return 0
  mkdir -p "$dir" && cp "$here/package.json" "$here/package-lock.json" "$dir/" || return 1
  echo "   installing npm packages in $dir"
  (cd "$dir" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error > npm.log 2>&1) ||
    { tail -n 20 "$dir/npm.log" >&2; return 1; }
  mkdir -p "$dir/node_modules/.ready"
}

# Waits until a line with $2 stands in file $1, at most $3 seconds, while the server lives.
wait_for_line() {
  local tries=$(($3 * 20))
  while [ $tries -gt 0 ]; do
    grep -qs -e "$2" "$1" && return 0
    kill -0 "$server_pid" 2> /dev/null || break
    sleep 0.05
    tries=$((tries - 1))
  done
  sed 's/^/  | /' "$1" >&2
  return 1
}

port_of() {  # READY line, what stands before the port
  sed -n "s|^READY.* $2[^: ]*:\([0-9]*\).*|\1|p" "$1"
}

# partita on free ports: plain, TLS and admin, with a second account. $1: directory; $2: program; $3: --io.
start_partita() {
  local work=$1 program=$2 io=$3
  export TABLE_ACCOUNT=devstoreaccount1 TABLE_EXTRAS=partita TABLE_TLS_CERT=$work/cert.pem
  export TABLE_SECOND_ACCOUNT=secondaccount
  # The development account's key is the one that everyone knows.
  export TABLE_KEY="Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
  TABLE_SECOND_KEY=$(openssl rand -base64 64 | tr -d '\n') || return 1
  export TABLE_SECOND_KEY
  local name
  for name in "" next-; do  # The second one is what SIGHUP finds.
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
      -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$work/${name}key.pem" -out "$work/${name}cert.pem" \
      2> /dev/null || return 1
  done
  AZURITE_ACCOUNTS="$TABLE_ACCOUNT:$TABLE_KEY;$TABLE_SECOND_ACCOUNT:$TABLE_SECOND_KEY" \
    "$program" serve --data "$work/store" --memory "$server_memory" ${io:+--io "$io"} \
    --listen http://127.0.0.1:0 --listen https://127.0.0.1:0 --cert "$work/cert.pem" --key-file "$work/key.pem" \
    ${server_settings:+--settings "$server_settings"} --admin 127.0.0.1:0 ${server_access_log:+--access-log "$work/access.log"} > "$work/server.log" 2>&1 &
  server_pid=$!
  wait_for_line "$work/server.log" '^READY' 30 || return 1
  TABLE_ENDPOINT=http://127.0.0.1:$(port_of "$work/server.log" http://)/$TABLE_ACCOUNT
  TABLE_TLS_PORT=$(port_of "$work/server.log" https://)
  TABLE_ADMIN_PORT=$(port_of "$work/server.log" admin=http://)
  TABLE_SERVER_PID=$server_pid TABLE_ACCESS_LOG=$work/access.log
  export TABLE_ENDPOINT TABLE_TLS_PORT TABLE_ADMIN_PORT TABLE_SERVER_PID TABLE_ACCESS_LOG
}

# Azurite, tables only, in memory: its fast mode.
start_azurite() {
  local work=$1 modules=$2
  export TABLE_ACCOUNT=devstoreaccount1 TABLE_EXTRAS=
  export TABLE_KEY="Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
  local port  # Azurite takes port 0, but does not tell which one it got.
  port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  (cd "$work" && exec node "$modules/azurite/dist/src/table/main.js" --inMemoryPersistence --skipApiVersionCheck \
    --disableTelemetry --silent --tablePort "$port" > server.log 2>&1) &
  server_pid=$!
  wait_for_line "$work/server.log" 'successfully started on' 30 || return 1
  TABLE_ENDPOINT=http://127.0.0.1:$port/$TABLE_ACCOUNT
  export TABLE_ENDPOINT
}

# SIGTERM, unless "$1" is signalled-already; true if the server then ends with exit code 0 within 20 seconds.
stop_server() {
  local pid=$server_pid tries=400 code
  server_pid=
  [ "${1:-}" = signalled-already ] || kill -TERM "$pid" 2> /dev/null || return 1
  while kill -0 "$pid" 2> /dev/null && [ $tries -gt 0 ]; do
    sleep 0.05
    tries=$((tries - 1))
  done
  [ $tries -gt 0 ] || kill -KILL "$pid"
  wait "$pid"
  code=$?
  [ $code -eq 0 ] || echo "the server ended with exit code $code" >&2
  return $code
}

# For what ends early.
stop_server_now() {
  [ -n "$server_pid" ] || return 0
  kill -KILL "$server_pid" 2> /dev/null
  wait "$server_pid" 2> /dev/null
  server_pid=
}
