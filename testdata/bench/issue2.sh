#!/bin/sh
# The speed that the broker must not fall below, as ratios within one run; see README.md.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${CLIENTS:=8}" "${SECONDS_EACH:=5}" "${ROUNDS:=3}" "${PREFILL:=300000}"
: "${SBROKER_SQL:=$here/../../sql/sbroker.sql}"
: "${PGBIN:=$(pg_config --bindir)}"
PATH=$PGBIN:$PATH

as_server=
[ "$(id -u)" != 0 ] || as_server='runuser -u postgres --' # the server refuses root
work=$(mktemp -d)
[ -z "$as_server" ] || chown postgres "$work"
stop() {
  cd /
  $as_server "$PGBIN/pg_ctl" -D "$work/data" -m immediate stop >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 1' INT TERM

cd "$work"
$as_server "$PGBIN/initdb" -D "$work/data" -U postgres -A trust --no-sync >/dev/null
$as_server "$PGBIN/pg_ctl" -D "$work/data" -l "$work/log" -w start >/dev/null -o "-k $work -h '' \
  -c synchronous_commit=off -c shared_buffers=512MB -c max_wal_size=8GB -c checkpoint_timeout=1h \
  -c autovacuum_naptime=5s"
export PGHOST="$work" PGUSER=postgres PGDATABASE=bench PGOPTIONS='-c client_min_messages=warning'
createdb bench
psql -qXv ON_ERROR_STOP=1 -f "$SBROKER_SQL" -f "$here/setup.sql" >/dev/null
postmaster=$(head -1 "$work/data/postmaster.pid")
ticks=$(getconf CLK_TCK)
body=$(printf '%0200d' 0)

# Clock ticks of processor time that the ended children of a process had used.
children() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $14 + $15 }'; }

measure() { # name: appends "name tps server-µs total-µs" to results, processor time per transaction
  psql -qX -c checkpoint
  client=$(children $$) server=$(children "$postmaster")
  pgbench -n -M prepared -c "$CLIENTS" -j 2 -T "$SECONDS_EACH" -D left=0 -D body="$body" -f "$here/$1.sql" >"$work/out" 2>&1 ||
    { cat "$work/out" >&2; exit 1; }
  client=$(($(children $$) - client))
  while ps --ppid "$postmaster" -o args= | grep -q ' bench '; do sleep 0.1; done # until the backends have ended
  server=$(($(children "$postmaster") - server))
  awk -v name="$1" -v server="$server" -v total="$((server + client))" -v ticks="$ticks" '
    /transactions actually processed/ { sub("/.*", "", $6); n = $6 }
    /^tps/ { tps = $3 }
    END { printf "%s %.0f %.1f %.1f\n", name, tps, server / ticks / n * 1e6, total / ticks / n * 1e6 }' "$work/out" |
    tee -a "$work/results" |
    awk '{ printf "  %-12s %7d tps  CPU %6.1f µs in the server, %6.1f µs with pgbench\n", $1, $2, $3, $4 }'
}

for round in $(seq "$ROUNDS"); do
  echo "round $round"
  psql -qX -c "call bench.fill($PREFILL)" -c 'vacuum analyze'
  measure delete
  measure receive
  left=$(psql -qXAt -c 'select least((select count(*) from bench.plain), (select count(*) from sb_internal.message))')
  [ "$left" -gt 0 ] || { echo 'a queue ran empty: raise PREFILL or lower SECONDS_EACH' >&2; exit 1; }
  measure insert
  measure send
  measure begin_send
done

# Ratios of each round, then their median.
awk -v rounds="$ROUNDS" '
  { i = ++seen[$1]; tps[$1, i] = $2; server[$1, i] = $3; cpu[$1, i] = $4 }
  function median(v, n,   i, j, t) {
    for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
  }
  function ratio(what, of, least,   i, a, b, c) {
    for (i = 1; i <= rounds; i++) { a[i] = tps[what, i] / tps[of, i]; b[i] = cpu[of, i] / cpu[what, i]; c[i] = server[of, i] / server[what, i] }
    printf "%-10s / %-7s  tps %.2f  CPU %.2f  CPU of the server %.2f  (wanted %.2f)\n", what, of, median(a, rounds),
      median(b, rounds), median(c, rounds), least
  }
  END { print "median of " rounds " rounds"; ratio("send", "insert", 0.40); ratio("receive", "delete", 0.60); ratio("begin_send", "send", 0.50) }
' "$work/results"
