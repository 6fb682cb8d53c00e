//go:build profile

package main

import (
	"log"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"time"
)

// profiles is the directory that .ci/profile reads, set by the linker (-X).
var profiles string

// A program built with the tag profile writes CPU profiles, for default.pgo. The benchmark
// ends its processes with signals, so each profile covers half a second, and the last one is lost.
func init() {
	name := filepath.Join(profiles, strconv.Itoa(os.Getpid()))
	go func() {
		for i := 0; ; i++ {
			if err := profile(name + "-" + strconv.Itoa(i)); err != nil {
				log.Fatal(err)
			}
		}
	}()
}

func profile(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond)
	pprof.StopCPUProfile()
	return os.Rename(name, name+".pprof")
}
