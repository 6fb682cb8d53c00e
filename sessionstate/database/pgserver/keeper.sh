# Runs a PostgreSQL server for package pgserver. $1 is the directory of its programs, $2 that of
# the cluster, $3 its settings. It prints "ready" when the server answers. When stdin ends, which
# happens when the program that started the script ends in any way, it stops the server. The word
# "kill" on stdin kills the server and leaves its files.
cd "$2" || exit 1
[ -d data ] || "$1/initdb" -D data -U postgres -A trust -E UTF8 --locale=C --no-sync >>log 2>&1 || exit 1
# The server's shared memory is in files of the cluster: a killed server would leave it in
# /dev/shm. The child processes of a killed server take a moment to end, so try again.
for try in 1 2 3 4 5 6 7 8 9 10; do
  "$1/pg_ctl" -D data -l log -w -t 120 -s start \
    -o "-k $2 -c listen_addresses='' -c dynamic_shared_memory_type=mmap $3" >>log 2>&1 && break
  [ "$try" = 10 ] && exit 1
  sleep 1
done
read -r pid <data/postmaster.pid
echo ready
exec >/dev/null
if read -r word; then
  all="$pid $(ps -A -o pid= -o ppid= | awk -v parent="$pid" '$2 == parent { print $1 }')"
  kill -KILL $all
  for one in $all; do # a process that has ended may remain as a zombie if nobody waits for it
    while state=$(ps -o stat= -p "$one") && [ "${state#Z}" = "$state" ]; do sleep 0.05; done
  done
  rm -f data/postmaster.pid .s.PGSQL.5432.lock # a zombie would seem to hold these
  exit 0
fi
"$1/pg_ctl" -D data -m immediate -w -t 120 -s stop >>log 2>&1
cd / && rm -rf "$2"
