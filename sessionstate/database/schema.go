package database

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// A Schema defines the tables of one part of the program. Numbered files create them, and each
// file changes the tables of the previous one. N.sql runs on both engines; N.sqlite.sql or
// N.postgres.sql runs after it on one of them. The last number is the version.
//
// A file removes only what the previous version of the program does not use: a program works
// with its own version and with the next one.
type Schema struct {
	Name  string // of the part; [Server.Migrate] stores its version under this name
	Files fs.FS  // with a directory "schema"
}

// The engines, as in the names of files.
const (
	sqliteEngine   = ".sqlite"
	postgresEngine = ".postgres"
)

// steps returns the statements for each version, those of version 1 first.
func (s Schema) steps(engine string) ([]string, error) {
	var all []string
	for n := 1; ; n++ {
		var step []string
		found := false
		for _, e := range []string{"", sqliteEngine, postgresEngine} {
			text, err := fs.ReadFile(s.Files, fmt.Sprintf("schema/%d%s.sql", n, e))
			if err != nil {
				continue
			}
			if found = true; e == "" || e == engine {
				step = append(step, string(text))
			}
		}
		if !found {
			break
		}
		all = append(all, strings.Join(step, ";\n"))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the tables of %s are not in the program", s.Name)
	}
	return all, nil
}

// ErrVersion is returned if this program cannot use the version of the tables. Its text says what
// to do.
var ErrVersion = errors.New("the database has another version")

// A Version describes the version of the tables of one part.
type Version struct {
	Name       string
	Has, Knows int // versions of the database and of this program
}

// Err returns an error, which wraps [ErrVersion], if this program cannot use the tables. It can use those of
// its own version and of the next one, so that a server can be migrated while older programs run.
func (v Version) Err() error {
	switch {
	case v.Has > v.Knows+1:
		return fmt.Errorf("%w: its tables of %s have version %d, and this program knows %d: use a newer attache", ErrVersion, v.Name, v.Has, v.Knows)
	case v.Has < v.Knows:
		return fmt.Errorf("%w: its tables of %s have version %d, and this program needs %d: run \"attache store migrate\"", ErrVersion, v.Name, v.Has, v.Knows)
	}
	return nil
}
