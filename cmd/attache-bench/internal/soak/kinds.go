package soak

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

func (r *run) clients(ctx context.Context, d time.Duration, n int) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var all sync.WaitGroup
	number := uint64(0)
	for range n {
		for _, c := range r.kinds() {
			number++
			c.rng = rand.New(rand.NewPCG(r.o.Seed, number))
			all.Go(func() {
				for ctx.Err() == nil {
					c.session(ctx)
				}
			})
		}
	}
	all.Wait()
}

func (r *run) kinds() (all []*client) {
	at := func(f *program, path string) opener { return openHTTP("http://" + f.address + path) }
	for _, era := range []string{"legacy", "modern"} {
		for _, c := range []*client{
			{kind: "stdio", open: openStdio("--config", r.config(), "--", r.self, Stdio, r.ledger), server: &place{}},
			{kind: "stdio to HTTP", open: openStdio("--config", r.config(), "--", r.remote.url()), remote: r.remote.place},
			{kind: "HTTP to stdio", open: at(r.steady, "/local"), front: r.steady.place, server: &place{}},
			{kind: "HTTP to HTTP", open: at(r.steady, "/remote"), front: r.steady.place, remote: r.remote.place},
			{kind: "HTTP to stdio, front killed", open: at(r.shaky, "/local"), front: r.shaky.place, server: &place{}},
			{kind: "HTTP to HTTP, front killed", open: at(r.shaky, "/remote"), front: r.shaky.place, remote: r.remote.place},
		} {
			c.run, c.kind, c.modern = r, c.kind+", "+era, era == "modern"
			all = append(all, c)
		}
	}
	return all
}
