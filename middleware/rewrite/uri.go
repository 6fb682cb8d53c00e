package rewrite

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A server that parses URIs accepts many URIs for one resource: the URL parser of browsers
// and Node (URL Standard) repairs invalid URIs, drops default ports, resolves dot segments
// and decodes hosts; those of Python and Java do other things. attache cannot know them all,
// so a request that may reach a hidden resource must have a URI in normal form, which they
// all read alike:
//
//   - only ASCII characters that RFC 3986 allows, and escapes only of characters that need
//     one, but not of control characters, slashes or escapes, nor in a host of :@[]
//   - a scheme in lower case, other than url
//   - for http, https, ws, wss and ftp: "//", a host in lower-case ASCII, no default port,
//     no user, and a path
//   - for file: "///"
//   - no dot segments
//
// For a URI in normal form the remaining differences are small, and [readings] covers them:
// escapes, letter case, repeated slashes, the port, and where the query begins.

// defaultPorts are the special schemes of the URL Standard with an authority.
var defaultPorts = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}

// wrapper is a scheme that Java's URL and Python's urlopen remove, to read the URI after it.
const wrapper = "url"

// irregularity returns why a URI is not in normal form, "" if it is.
func irregularity(uri string) string {
	scheme, rest, found := strings.Cut(uri, ":")
	if !found || scheme == "" || strings.Trim(scheme, lowerCase+digits+"+-.") != "" || !strings.Contains(lowerCase, scheme[:1]) {
		return "it does not begin with a scheme in lower case"
	}
	// A rule for the URI behind url: would see another scheme than the reader.
	if scheme == wrapper {
		return "it begins with url:, which some readers remove"
	}
	if strings.ContainsFunc(rest, func(r rune) bool { return !strings.ContainsRune(uriCharacters, r) }) {
		return "it has characters that must be escaped"
	}
	decoded, err := url.PathUnescape(rest)
	if err != nil || !utf8.ValidString(decoded) || needlessEscape(rest) {
		return "it has an escape that is invalid or not needed"
	}
	for _, segment := range strings.FieldsFunc(decoded, func(r rune) bool { return strings.ContainsRune("/;?#", r) }) {
		if segment == "." || segment == ".." {
			return "it has a dot segment"
		}
	}
	return irregularAuthority(scheme, rest)
}

const (
	lowerCase     = "abcdefghijklmnopqrstuvwxyz"
	letters       = lowerCase + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits        = "0123456789"
	unreserved    = letters + digits + "-._~"
	uriCharacters = unreserved + ":/?#[]@!$&'()*+,;=%"
)

// needlessEscape reports whether text escapes a character that needs no escape, at which
// some reader ends or splits a path, or that begins another escape.
func needlessEscape(text string) bool {
	for {
		_, after, found := strings.Cut(text, "%")
		if !found {
			return false
		}
		c, err := strconv.ParseUint(after[:min(2, len(after))], 16, 8)
		if err != nil || c < ' ' || c == 0x7f || strings.Contains(unreserved+`/\`, string(rune(c))) && c < utf8.RuneSelf {
			return true
		}
		text = after[2:] // the caller has checked that two digits follow each %
		if _, err := url.PathUnescape("%" + text[:min(2, len(text))]); c == '%' && err == nil {
			return true
		}
	}
}

// irregularAuthority is like irregularity, for the part between "//" and the path.
func irregularAuthority(scheme, rest string) string {
	port, special := defaultPorts[scheme]
	hier, hierarchical := strings.CutPrefix(rest, "//")
	authority := upTo(hier, "/?#")
	switch {
	case !hierarchical && (special || scheme == "file"):
		return "it has no // after its scheme"
	case !hierarchical:
		return ""
	case (special || scheme == "file") && !strings.HasPrefix(hier[len(authority):], "/"):
		return "it has no path"
	case scheme == "file" && authority != "":
		return "it is a file URI with a host"
	case special && authority == "":
		return "it has no host"
	}
	return irregularHost(authority, special, port)
}

// irregularHost is like irregularity, for a host and its port.
func irregularHost(authority string, special bool, defaultPort string) string {
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
		// In the form that a parser writes: no sign, no leading zero, no default.
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || strconv.FormatUint(n, 10) != port || port == defaultPort {
			return "its port is invalid, or the default one"
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !a.Is6() || a.Is4In6() || a.Zone() != "" || "["+a.String()+"]" != host {
			return "its host is not an address in normal form"
		}
		return ""
	}
	// For a reader that decodes first, an escaped @ ends a user, and an escaped colon the host.
	decoded, _ := url.PathUnescape(host) // irregularity has checked the escapes
	switch {
	case strings.ContainsAny(decoded, ":@[]"):
		return "it has a user, or more than one port"
	case special && !plainHost(host):
		return "its host is not in lower-case ASCII"
	}
	return ""
}

// plainHost reports whether every reader reads host alike: labels of lower-case ASCII, or
// four decimal numbers.
func plainHost(host string) bool {
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || strings.Trim(label, lowerCase+digits+"-_") != "" || strings.HasPrefix(label, "xn--") {
			return false
		}
	}
	last := labels[len(labels)-1]
	if strings.Trim(last, digits) == "" || strings.HasPrefix(last, "0x") {
		_, err := netip.ParseAddr(host) // it only accepts the normal form
		return err == nil
	}
	return true
}

// upTo returns s up to the first of the characters, or all of s if it has none of them.
func upTo(s, chars string) string {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i]
	}
	return s
}

// readings returns the canonical forms in which readers may read a URI: in full, without
// query and fragment, and also without port, parameters and final slash.
func readings(uri string) []string {
	all := canonical(strings.ReplaceAll(uri, `\`, "/")) // browsers and Node read a backslash so
	noQuery := upTo(all, "?#")
	var bare strings.Builder
	for i, segment := range strings.Split(noQuery, "/") {
		if i > 0 {
			bare.WriteByte('/')
		}
		segment, _, _ = strings.Cut(segment, ";") // parameters (RFC 3986, 3.3)
		// The first segment is the scheme, and this one the host with its port.
		if colon := strings.LastIndexByte(segment, ':'); i == 1 && colon >= 0 && strings.Trim(segment[colon+1:], digits) == "" {
			segment = segment[:colon]
		}
		bare.WriteString(segment)
	}
	return []string{all, noQuery, strings.TrimSuffix(bare.String(), "/")}
}

// canonical returns a URI, or a pattern of URIs, in the letters of [wire.Fold], with
// escapes decoded, one slash for several, one after the scheme, and dot segments resolved.
func canonical(uri string) string {
	if decoded, err := url.PathUnescape(uri); err == nil {
		uri = decoded
	}
	uri = wire.Fold(uri)
	scheme, rest, found := strings.Cut(uri, ":")
	if !found {
		return uri
	}
	if scheme == "file" {
		// A file URI may name this machine (RFC 8089).
		rest = strings.Replace(rest, "//localhost/", "///", 1)
	}
	// Clean resolves dot segments and joins slashes. It drops the final one, which some servers tell apart.
	clean := path.Clean("/" + rest)
	if strings.HasSuffix(rest, "/") && clean != "/" {
		clean += "/"
	}
	return scheme + ":" + clean
}

// uriPatterns returns the canonical form of those patterns that may match a URI.
func uriPatterns(patterns []string) (out []string) {
	for _, p := range patterns {
		// The pattern may match a colon after the characters of a scheme.
		at := strings.TrimLeft(strings.ToLower(p), lowerCase+digits+"+-.?")
		if strings.HasPrefix(at, ":") || strings.HasPrefix(at, "*") || strings.HasPrefix(at, `\`) {
			out = append(out, canonical(p))
		}
	}
	return out
}

// schemeOf returns the scheme of a URI, "" if readers may read different schemes, or none.
func schemeOf(uri string) string {
	scheme, _, found := strings.Cut(wire.Fold(uri), ":")
	if !found || scheme == wrapper || strings.Trim(scheme, lowerCase+digits+"+-.") != "" {
		return ""
	}
	return scheme
}

// mayMatchScheme reports whether one of the patterns may match a URI with that scheme, or
// with any scheme if it is "".
func mayMatchScheme(patterns []string, scheme string) bool {
	return scheme == "" || slices.ContainsFunc(patterns, func(p string) bool { return mayMatchPrefix(p, scheme+":") })
}

// mayMatchPrefix reports whether a pattern may match a name with that prefix. The prefix may
// be as long as a message; it is read only up to the first difference.
func mayMatchPrefix(pattern, prefix string) bool {
	for i := range len(prefix) {
		pattern = strings.TrimPrefix(pattern, `\`)
		switch {
		case pattern == "" || pattern[0] != '?' && pattern[0] != '*' && pattern[0] != prefix[i]:
			return false
		case pattern[0] == '*':
			return true
		}
		pattern = pattern[1:]
	}
	return true
}
