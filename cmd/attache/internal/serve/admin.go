package serve

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"

	"github.com/attache-mcp/attache/proxy/front"
)

// startAdmin serves serve.admin. It returns nil if serve.admin is not set. failed must have room for one
// error, because after Close nobody may read it.
func (s *service) startAdmin(ctx context.Context, failed chan<- error) (*http.Server, error) {
	if s.settings.Admin == "" {
		return nil, nil
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.settings.Admin)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: s.adminHandler(), ReadHeaderTimeout: headerTime, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)}
	go func() { failed <- server.Serve(listener) }()
	return server, nil
}

// adminHandler returns the handler for the person who runs attache. It refuses requests with a
// foreign host name, which a web page can send if its name resolves to the loopback interface (DNS
// rebinding).
func (s *service) adminHandler() http.Handler {
	mux := http.NewServeMux()
	for path, handler := range s.probes() {
		mux.Handle(path, handler)
	}
	mux.HandleFunc("/metrics", s.metrics)
	mux.HandleFunc("/debug/pprof/{$}", profiles)
	mux.HandleFunc("/debug/pprof/{profile}", profile)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !front.IsLoopbackHost(r.Host) {
			http.Error(w, "serve.admin is for this machine: use 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func profiles(w http.ResponseWriter, _ *http.Request) {
	text := "profile?seconds=30\ntrace?seconds=30\n"
	for _, p := range pprof.Profiles() {
		text += p.Name() + "\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text))
}

// profile serves profiles and traces for go tool pprof and go tool trace. It replaces
// net/http/pprof, because the imports of that package would be initialised at every start.
func profile(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	var err error
	switch name := r.PathValue("profile"); {
	case name == "profile":
		if err = pprof.StartCPUProfile(w); err == nil {
			wait(r)
			pprof.StopCPUProfile()
		}
	case name == "trace":
		if err = trace.Start(w); err == nil {
			wait(r)
			trace.Stop()
		}
	case pprof.Lookup(name) == nil:
		notFound(w, r)
	default:
		debug, _ := strconv.Atoi(r.URL.Query().Get("debug"))
		if gc, _ := strconv.Atoi(r.URL.Query().Get("gc")); gc > 0 && name == "heap" {
			runtime.GC()
		}
		_ = pprof.Lookup(name).WriteTo(w, debug) // fails when the client has left
	}
	if err != nil { // another profile is running, and nothing was written
		http.Error(w, err.Error(), http.StatusConflict)
	}
}

// maxProfile is the longest duration of a profile, in seconds.
const maxProfile = 600

// wait returns after the number of seconds in the request, or when the client leaves.
func wait(r *http.Request) {
	seconds, err := strconv.Atoi(r.URL.Query().Get("seconds"))
	if err != nil || seconds < 1 || seconds > maxProfile {
		seconds = 30
	}
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
	case <-r.Context().Done():
	}
}
