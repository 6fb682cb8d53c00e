package logintest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// knows reports whether the authorization server gives tokens for the resource in the parameters.
func (s *Server) knows(params url.Values) bool {
	resource := params.Get("resource")
	switch s.Resource {
	case "":
		return resource != "" && strings.HasPrefix(s.MCP(), resource)
	case "-":
		return !params.Has("resource")
	}
	return resource == s.Resource
}

// hasParam reports whether the parameters have the one that the authorization server wants.
func (s *Server) hasParam(params url.Values) bool {
	name, value, _ := strings.Cut(s.Param, "=")
	return s.Param == "" || params.Get(name) == value
}

func (s *Server) renews(f *family) bool {
	offline := slices.Contains(strings.Fields(f.scope), "offline_access")
	return !strings.HasPrefix(f.client, "machine") && (offline || !s.Offline) && !f.online
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
