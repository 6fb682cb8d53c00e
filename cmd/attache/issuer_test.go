package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// issuer is a script command: "issuer CONFIG..." starts an https server, whose certificate SSL_CERT_FILE
// contains, and replaces ISSUER in the files with the address of its key set. The file "mode" selects its
// behaviour: "serve" (its key set is jwks.json), "hang", or anything else for an error.
func issuer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: issuer CONFIG...")
	}
	over := make(chan struct{})
	mode, keys := ts.MkAbs("mode"), ts.MkAbs("jwks.json")
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, _ := os.ReadFile(mode)
		switch strings.TrimSpace(string(said)) {
		case "serve":
			http.ServeFile(w, r, keys)
		case "hang":
			select {
			case <-over:
			case <-r.Context().Done():
			}
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	ts.Defer(func() { close(over); server.Close() })
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ts.Check(os.WriteFile(ts.MkAbs("issuer.pem"), cert, 0o600))
	ts.Setenv("SSL_CERT_FILE", ts.MkAbs("issuer.pem"))
	for _, file := range args {
		data, err := os.ReadFile(ts.MkAbs(file))
		ts.Check(err)
		text := strings.ReplaceAll(string(data), "ISSUER", server.URL+"/"+filepath.Base(keys)+"?s=hidden")
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o600))
	}
}
