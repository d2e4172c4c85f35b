#!/bin/sh
# The storm on PostgreSQL from two hosts: a server with its data in memory and two network namespaces that reach it, each
# by a link of its own. Needs root, iproute2 and PostgreSQL. Everything is removed at the end, except what is in $STORM:
# with it kept, the same command goes on where it stopped (--minutes).
#
#   sh experiments/security/two_hosts.sh --case 15 --minutes 15
set -eu
here=$(dirname "$0")
storm=${STORM:-/dev/shm/shapedp-storm}
python=${PYTHON:-python}
server=10.213.0.1
binaries=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }

clean() {
    as_postgres "$binaries/pg_ctl" -D "$storm/data" -m fast -w stop >/dev/null 2>&1 || true
    for host in a b; do ip netns del "storm-$host" 2>/dev/null || true; done
    for host in a b; do ip link del "storm-to-$host" 2>/dev/null || true; done
    ip address del "$server/32" dev lo 2>/dev/null || true
}
clean
trap clean EXIT
trap 'exit 130' INT TERM

ip address add "$server/32" dev lo
number=1
for host in a b; do
    ip netns add "storm-$host"
    ip link add "storm-to-$host" type veth peer name eth0 netns "storm-$host"
    ip address add "10.213.$number.1/30" dev "storm-to-$host"
    ip link set "storm-to-$host" up
    ip -n "storm-$host" address add "10.213.$number.2/30" dev eth0
    ip -n "storm-$host" link set eth0 up
    ip -n "storm-$host" link set lo up
    ip -n "storm-$host" route add default via "10.213.$number.1"
    number=$((number + 1))
done

mkdir -p "$storm/logs"
if [ ! -d "$storm/data" ]; then
    mkdir "$storm/data"
    chown postgres "$storm/data"
    as_postgres "$binaries/initdb" -D "$storm/data" -A trust -U ledger -E UTF8 >"$storm/logs/initdb"
    echo "host all ledger 10.213.0.0/16 trust" >>"$storm/data/pg_hba.conf"
fi
as_postgres "$binaries/pg_ctl" -D "$storm/data" -w -l "$storm/data/log" \
    -o "-k '' -c listen_addresses=$server -c port=5477 -c max_connections=300" start >/dev/null
for number in $(seq 0 20); do
    "$binaries/createdb" -h "$server" -p 5477 -U ledger "storm$number" 2>/dev/null || true
done
"$python" "$here/ledger_storm.py" --postgresql "postgresql://ledger@$server:5477/storm{}" --hosts storm-a,storm-b \
    --folder "$storm/logs" "$@"
