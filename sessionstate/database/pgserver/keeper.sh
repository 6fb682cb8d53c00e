# Keeps a PostgreSQL server for package pgserver. $1 is the directory of its programs, $2 the one
# of the cluster, $3 its settings. It prints "ready", and ends the server when its stdin ends: when
# the program that started it does, however that ends. The word "kill" on stdin kills the server and leaves its files.
cd "$2" || exit 1
[ -d data ] || "$1/initdb" -D data -U postgres -A trust -E UTF8 --locale=C --no-sync >>log 2>&1 || exit 1
# What its processes share is in files of the cluster: a killed server would leave it in /dev/shm.
# Processes of a server that was killed take a moment to notice that.
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
  for one in $all; do # a process that has ended may stay as a zombie where nobody waits for it
    while state=$(ps -o stat= -p "$one") && [ "${state#Z}" = "$state" ]; do sleep 0.05; done
  done
  rm -f data/postmaster.pid .s.PGSQL.5432.lock # which the zombie would seem to hold
  exit 0
fi
"$1/pg_ctl" -D data -m immediate -w -t 120 -s stop >>log 2>&1
cd / && rm -rf "$2"
