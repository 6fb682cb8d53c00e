package pgserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// bouncerKeeper is a script that runs pgbouncer until its stdin ends. $1 is the program, $2 its
// configuration, $3 its socket.
const bouncerKeeper = `ulimit -n "$(ulimit -Hn)"
"$1" "$2" >/dev/null 2>&1 & pid=$!
until [ -S "$3" ]; do kill -0 $pid || exit 1; sleep 0.05; done
echo ready
exec >/dev/null
read -r word
kill -KILL $pid`

// A Bouncer is a pgbouncer in transaction mode in front of a cluster.
type Bouncer struct{ dir string }

// Bouncer starts a pgbouncer with at most the given number of connections to each database. It
// ends with the cluster.
func (c *Cluster) Bouncer(connections int) (*Bouncer, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("%w: pgbouncer is not found: install it (Debian: pgbouncer)", ErrMissing)
	}
	b := &Bouncer{c.dir}
	users, file, socket := filepath.Join(c.dir, "users"), filepath.Join(c.dir, "pgbouncer.ini"), filepath.Join(c.dir, ".s.PGSQL.6432")
	if err := os.WriteFile(users, []byte(`"attache" ""`+"\n"), 0o644); err != nil { // readable by the user of the cluster
		return nil, err
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, `[databases]
* = host=%[1]s port=5432
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = %[1]s
logfile = %[1]s/pgbouncer.log
pidfile = %[4]s
auth_type = trust
auth_file = %[2]s
pool_mode = transaction
default_pool_size = %[3]d
max_client_conn = 10000
`, c.dir, users, connections, b.pidFile()), 0o644); err != nil {
		return nil, err
	}
	c.bouncer, err = c.keep(bouncerKeeper, program, file, socket)
	return b, err
}

func (b *Bouncer) pidFile() string { return filepath.Join(b.dir, "pgbouncer.pid") }

// PID returns the id of the process.
func (b *Bouncer) PID() (int, error) { return readPID(b.pidFile()) }

// URL returns the URL through the bouncer of a database of the cluster.
func (b *Bouncer) URL(database string) string { return database + "&port=6432" }
