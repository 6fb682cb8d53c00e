package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/attache-mcp/attache/cmd/attache/internal/login/logintest"
)

type oauthKey struct{}

// oauthServer is a script command: "oauthserver NAME" starts a remote server that requires a login, and sets
// the variable NAME to its address.
func oauthServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: oauthserver NAME")
	}
	s := logintest.New(logintest.Config{
		Clients: map[string]string{"machine": "machine-s3cret"}, Scopes: []string{"read"}, Methods: []string{"client_secret_post"},
		Protected: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			token := []byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			answerRemote(w, r, bytes.ReplaceAll(body, []byte("the token, please"), token))
		}),
	})
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.MCP())
	ts.Value(oauthKey{}).(map[string]*logintest.Server)[args[0]] = s
}

// oauthCommand is a script command: "oauth NAME count EVENT N" checks that an event happened N times, "oauth
// NAME lifetime SPAN" sets the lifetime of tokens, "oauth NAME revoke" revokes all tokens, and "oauth NAME
// secrets FILE..." checks that none of the files has a token.
func oauthCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: oauth NAME count|lifetime|revoke|secrets [ARG...]")
	}
	s := ts.Value(oauthKey{}).(map[string]*logintest.Server)[args[0]]
	switch args[1] {
	case "count":
		want, err := strconv.Atoi(args[3])
		ts.Check(err)
		if n := s.Count(args[2]); n != want {
			ts.Fatalf("%s happened %d times, want %d", args[2], n, want)
		}
	case "lifetime":
		span, err := time.ParseDuration(args[2])
		ts.Check(err)
		s.SetLifetime(span)
	case "revoke":
		s.Revoke(false)
	case "secrets":
		for _, file := range args[2:] {
			text := ts.ReadFile(file)
			for _, secret := range append(s.Secrets(), "machine-s3cret") {
				if strings.Contains(text, secret) {
					ts.Fatalf("%s has a secret in it", file)
				}
			}
		}
	default:
		ts.Fatalf("unknown %q", args[1])
	}
}

// fakeBrowser is a browser whose user approves everything.
func fakeBrowser() {
	resp, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	resp.Body.Close()
}
