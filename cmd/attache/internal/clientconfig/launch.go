package clientconfig

import (
	"os"
	"slices"
	"strings"
)

// Package is the name of attache's npm package.
const Package = "attache-mcp"

// teamsCommand is the argument that starts attache's own server.
const teamsCommand = "teams"

// A Launch describes how a client starts attache.
type Launch struct {
	// Command is the program, a path or a name.
	Command string
	// Args are the arguments of Command that start attache, if Command is another program such as
	// npx. They precede Flags.
	Args []string
	// Flags are attache's flags. They precede the "--".
	Flags []string
}

// ThisProgram returns the launch that matches entries which start the running attache, whatever its
// file is called.
func ThisProgram() Launch {
	path, err := os.Executable()
	if err != nil {
		return Launch{} // matches only the usual names
	}
	return Launch{Command: path}
}

// starts reports whether program with the arguments args starts attache as in l. Flags may follow.
func (l Launch) starts(program string, args []string) bool {
	return l.Command != "" && program == l.Command && len(args) >= len(l.Args) && slices.Equal(args[:len(l.Args)], l.Args)
}

// Wrapped reports whether e starts attache. dashes is the index of the argument "--" that precedes
// the server, or -1. l is another way to start attache, besides the usual ones.
func (e *Entry) Wrapped(l Launch) (dashes int, wrapped bool) {
	if e.command.to == 0 {
		return -1, false
	}
	dashes = e.dashes(l)
	own := e.Args
	if dashes >= 0 {
		own = e.Args[:dashes]
	}
	program, own := e.withoutCmd(own)
	switch {
	case baseName(program) == "attache":
		return dashes, true
	case dashes < 0:
		return -1, e.IsTeams()
	}
	return dashes, l.starts(program, own) || starter(own) > 0
}

// dashes returns the index of the argument "--" that precedes the server, or -1. npx takes a "--" of its own
// before the name of the program that it starts.
func (e *Entry) dashes(l Launch) int {
	at := slices.Index(e.Args, "--")
	if at < 0 || at+1 == len(e.Args) {
		return at
	}
	program, own := e.withoutCmd(e.Args[:at])
	name := baseName(program)
	isNPX := name == "npx" || name == "npm" // another program, such as "op run --", must stay in front
	if !isNPX || l.starts(program, own) || starter(own) > 0 || !isAttache(e.Args[at+1]) {
		return at
	}
	if more := slices.Index(e.Args[at+1:], "--"); more >= 0 {
		return at + 1 + more
	}
	return at
}

// withoutCmd returns the program and the arguments that e starts, without a leading "cmd /c". args
// are the arguments of e, or the first of them.
func (e *Entry) withoutCmd(args []string) (program string, rest []string) {
	if baseName(e.Command) == "cmd" && len(args) > 1 && strings.EqualFold(args[0], "/c") {
		return args[1], args[2:]
	}
	return e.Command, args
}

// launcher returns how many arguments of a wrapped entry e start attache and are not attache's own.
// dashes is the index of the argument "--".
func (e *Entry) launcher(l Launch, dashes int) int {
	own := e.Args[:dashes]
	if n := starter(own); n > 0 && baseName(e.Command) != "attache" {
		return n
	}
	switch {
	case baseName(e.Command) == "cmd":
		return 2 // cmd /c attache
	case l.starts(e.Command, own):
		return len(l.Args)
	}
	return 0
}

// starter returns how many of args, the arguments of a program such as npx, start attache. The last of them is
// the name of attache's package. If an option names the package, it is the name of the program in it. starter
// returns 0 if args do not start attache.
func starter(args []string) int {
	for i, arg := range args {
		name, option := strings.CutPrefix(arg, "--package=")
		option = option || i > 0 && (args[i-1] == "-p" || args[i-1] == "--package")
		switch {
		case !isPackage(name):
			continue
		case !option:
			return i + 1
		}
		if program := slices.IndexFunc(args[i+1:], isAttache); program >= 0 {
			return i + 1 + program + 1
		}
		return 0 // it is only installed
	}
	return 0
}

// isAttache reports whether npx starts attache for the name arg: that of its program or of its package.
func isAttache(arg string) bool { return arg == "attache" || isPackage(arg) }

// isPackage reports whether arg names attache's package, in any version.
func isPackage(arg string) bool {
	return arg == Package || strings.HasPrefix(arg, Package+"@")
}

// baseName returns the name of a program without its directory and without an extension of Windows,
// on all systems.
func baseName(program string) string {
	name := strings.ToLower(program[strings.LastIndexAny(program, `/\`)+1:])
	for _, end := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}
