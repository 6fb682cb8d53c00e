package attachetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
)

// Packaged returns the content of a file in packaging, with texts replaced that must all occur in it. It
// works only in tests of the main package.
func Packaged(t *testing.T, name string, replace ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../packaging", name))
	testkit.Check(t, err)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(string(b), replace[i]) {
			t.Fatalf("packaging/%s has no %q", name, replace[i])
		}
	}
	return strings.NewReplacer(replace...).Replace(string(b))
}

// Nginx returns a command that runs nginx with the configuration in packaging, with the given fronts of
// attache instead of those in the file. Those in named get only requests for which a front names them.
func Nginx(t *testing.T, listen string, fronts []string, named ...string) []string {
	t.Helper()
	dir := t.TempDir()
	WriteCertificate(t, dir, 1)
	var lines strings.Builder
	for _, front := range slices.Concat(fronts, named) {
		fmt.Fprintf(&lines, "    %s  %s;\n", front, front)
	}
	site := Packaged(t, "nginx.conf",
		"listen 443 ", "listen "+listen+" ",
		"    127.0.0.1:8333  127.0.0.1:8333;\n    127.0.0.1:8334  127.0.0.1:8334;\n    127.0.0.1:8335  127.0.0.1:8335;\n", lines.String(),
		"server 127.0.0.1:8333 fail_timeout=1s;", "server "+strings.Join(fronts, " fail_timeout=1s;\n    server ")+" fail_timeout=1s;",
		"server 127.0.0.1:8333 max_fails=0;", "server "+strings.Join(fronts, " max_fails=0;\n    server ")+" max_fails=0;",
		"    server 127.0.0.1:8334 fail_timeout=1s;\n    server 127.0.0.1:8335 fail_timeout=1s;\n", "",
		"    server 127.0.0.1:8334 max_fails=0;\n    server 127.0.0.1:8335 max_fails=0;\n", "",
		"/etc/ssl/mcp.example.com.pem", dir+"/cert.pem", "/etc/ssl/mcp.example.com.key", dir+"/key.pem")
	WriteFile(t, filepath.Join(dir, "site.conf"), site)
	WriteFile(t, filepath.Join(dir, "nginx.conf"), `
daemon off; pid `+dir+`/pid; error_log stderr;
events {}
http {
    access_log off;
    client_body_temp_path `+dir+`/body; proxy_temp_path `+dir+`/proxy;
    fastcgi_temp_path `+dir+`/f; uwsgi_temp_path `+dir+`/u; scgi_temp_path `+dir+`/s;
    include `+dir+`/site.conf;
}
`)
	return []string{"nginx", "-e", "stderr", "-p", dir, "-c", dir + "/nginx.conf"}
}

// WriteCertificate writes a self-signed certificate and its key to cert.pem and key.pem in dir.
func WriteCertificate(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Check(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"mcp.example.com"}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	testkit.Check(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	testkit.Check(t, err)
	WriteFile(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	WriteFile(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}
