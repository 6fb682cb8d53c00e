package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/internal/testkit"
)

func TestSessionRoundTrip(t *testing.T) {
	in := &Session{
		Header: Header{Version: Version, Era: "modern", IDPrefix: "own-", Scrubbed: []string{"home"}},
		Events: []Event{
			{0, ClientIn, []byte(`{"jsonrpc":"2.0","id":1,"method":"<&>"}` + "\n")},
			{0.25, ServerIn, []byte("crlf\r\n")},
			{0.5, ServerOut, []byte("no utf-8 \xff\xfe\x00\n")},
			{1, ClientOut, []byte("half a line")},
			{2, ClientOut, nil},
			{3, ServerIn, []byte("\n")},
			{4, ServerIn, []byte("\u2028 \ufffd \u0000 \"\\\n")},
		},
	}
	var file bytes.Buffer
	testkit.Check(t, in.Write(&file))
	out, err := Read(bytes.NewReader(file.Bytes()))
	testkit.Check(t, err)
	if !reflect.DeepEqual(in, out) {
		t.Errorf("read back:\n%+v\nwant:\n%+v\nfile:\n%s", out, in, file.String())
	}
	if !strings.Contains(file.String(), `<&>`) {
		t.Errorf("<, > and & are escaped:\n%s", file.String())
	}
}

// Read returns the whole lines of a file that was cut off, but not the last input, whose outputs may be
// missing.
func TestReadCut(t *testing.T) {
	const in, out = `{"t":1,"at":"client-in","frame":"a"}` + "\n", `{"t":1,"at":"server-in","frame":"a"}` + "\n"
	const answer = `{"t":1,"at":"server-out","frame":"b"}` + "\n"
	for text, want := range map[string]int{in + out[:9]: 0, in + out + answer + out[:9]: 2, in + out: 2, in + out + in[:len(in)-1]: 3, in + out + in + out[:9]: 2, in + out + in + out + in[:1]: 2, in[:9]: 0} {
		s, err := Read(strings.NewReader(`{"version":1}` + "\n" + text))
		if cut := text[len(text)-1] != '\n' && want != 3; err != nil || len(s.Events) != want || s.Cut != cut {
			t.Errorf("%q: %+v, %v; want %d events", text, s, err, want)
		}
	}
}

func TestReadErrors(t *testing.T) {
	const head = `{"version":1,"era":"","scrubbed":[]}` + "\n"
	for name, c := range map[string]struct{ file, want string }{
		"empty":         {"", "line 1"},
		"no header":     {`{"t":1}` + "\n", "line 1: this is not the header"},
		"not JSON":      {"hello\n", "line 1"},
		"newer":         {`{"version":2}` + "\n", "version 2"},
		"bad line":      {head + "\n{\"t\":\n", "line 3"},
		"no place":      {head + `{"t":1,"at":"elsewhere","frame":""}`, "line 2: unknown place \"elsewhere\""},
		"no bytes":      {head + `{"t":1,"at":"client-in"}`, "line 2: neither frame nor base64"},
		"broken base64": {head + `{"t":1,"at":"client-in","base64":"*"}`, "line 2"},
		"base64 list":   {head + `{"t":1,"at":"client-in","base64":[1]}`, "line 2: json: cannot unmarshal array"},
		"endless time":  {head + `{"t":1e999,"at":"client-in","frame":""}`, "line 2: json: cannot unmarshal number 1e999"},
		"time as text":  {head + `{"t":"1","at":"client-in","frame":""}`, "line 2: json: cannot unmarshal string"},
	} {
		if _, err := Read(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

const theKey = "atk_k1_abcdefghijklmnopqrstuvwxyz012345"

func testScrubber() *Scrubber {
	return NewScrubber(Secrets{
		Values: []string{theKey, "hunter2-is-long", `quote"and\slash`},
		Home:   "/home/alice", Host: "alices-laptop",
	})
}

func TestScrub(t *testing.T) {
	const key1 = "atk_scrubbed1_00000000000000000000000000000000"
	for _, c := range []struct{ name, in, want, found string }{
		{"nothing", `{ "a" : 1.0, "b": "\u003c/" }`, `{ "a" : 1.0, "b": "\u003c/" }`, ""},
		{"key anywhere", `{"x":"my key is ` + theKey + `."}`, `{"x":"my key is ` + key1 + `."}`, "api-key"},
		{"two keys", `["` + theKey + `","atk_k2_zzzzzzzzzzzz","` + theKey + `"]`, `["` + key1 + `","atk_scrubbed2_00000000000000000000000000000000","` + key1 + `"]`, "api-key"},
		{"_meta", `{"_meta":{"io.github.attache-mcp/apiKey":"anything"}}`, `{"_meta":{"io.github.attache-mcp/apiKey":"scrubbed"}}`, "credential"},
		{"_meta with a key", `{"_meta":{"io.github.attache-mcp/apiKey":"` + theKey + `"}}`, `{"_meta":{"io.github.attache-mcp/apiKey":"` + key1 + `"}}`, "api-key,credential"},
		{"header", `{"Authorization": "Bearer abc.def-ghi"}`, `{"Authorization": "Bearer scrubbed"}`, "credential,token"},
		{"header of unusual form", `{"authorization":["Digest x", "Bearer abcdefgh, and more"]}`, `{"authorization":["scrubbed", "scrubbed"]}`, "credential"},
		{"names", `{"API_KEY":"a","client-secret":"b","password":12345,"token":"c","Set-Cookie":"d"}`, `{"API_KEY":"scrubbed","client-secret":"scrubbed","password":0,"token":"scrubbed","Set-Cookie":"scrubbed"}`, "credential"},
		{"names of other credentials", `{"DB_PASS":"a","otp":"012345","connectionString":"b"}`, `{"DB_PASS":"scrubbed","otp":"scrubbed","connectionString":"scrubbed"}`, "credential"},
		{"names of passwords", `{"MYSQL_PASS":"a","SMTP_PASS":"b","emailPass":"c","IMAP_PASS":"d","REDIS_PASS":"e","tests_pass":12}`, `{"MYSQL_PASS":"scrubbed","SMTP_PASS":"scrubbed","emailPass":"scrubbed","IMAP_PASS":"scrubbed","REDIS_PASS":"scrubbed","tests_pass":12}`, "credential"},
		{"names of several", `{"passwords":["a","b"],"api_keys":["c"],"secrets":"d","access_tokens":["e"],"max_tokens":5}`, `{"passwords":["scrubbed","scrubbed"],"api_keys":["scrubbed"],"secrets":"scrubbed","access_tokens":["scrubbed"],"max_tokens":5}`, "credential"},
		{"names with prefixes", `{"GITHUB_TOKEN":"a","OPENAI_API_KEY":"b","myPassword":"c"}`, `{"GITHUB_TOKEN":"scrubbed","OPENAI_API_KEY":"scrubbed","myPassword":"scrubbed"}`, "credential"},
		{"an environment as text", `{"text":"{\n  \"GITHUB_TOKEN\": \"abcdef\",\n  \"HOME\": \"/home/alice\"}"}`, `{"text":"{\n  \"GITHUB_TOKEN\": \"scrubbed\",\n  \"HOME\": \"/home/user\"}"}`, "credential,home"},
		{"not names", `{"page_token":"x","next_token":"y","progressToken":7,"tokens":"many","nextCursor":"x","requestState":"y","keys":["a"],"pass":"yes","pwd":"/x","path":"pypi-publish-to-test-and-production-index-after-all-checks-have-passed.yml"}`, `{"page_token":"x","next_token":"y","progressToken":7,"tokens":"many","nextCursor":"x","requestState":"y","keys":["a"],"pass":"yes","pwd":"/x","path":"pypi-publish-to-test-and-production-index-after-all-checks-have-passed.yml"}`, ""},
		{"a schema is unchanged", `{"properties":{"apiKey":{"type":"string"},"token":{"type":"string"}}}`, `{"properties":{"apiKey":{"type":"string"},"token":{"type":"string"}}}`, ""},
		{"empty, null, true", `{"apiKey":"","password":null,"token":true}`, `{"apiKey":"","password":null,"token":true}`, ""},
		{"escaped name", `{"api\u004bey":"x"}`, `{"api\u004bey":"scrubbed"}`, "credential"},
		{"listed", `{"x":"hunter2-is-long!"}`, `{"x":"scrubbed-secret-2!"}`, "secret"},
		{"listed, in a word", `{"x":"ahunter2-is-longb"}`, `{"x":"ascrubbed-secret-2b"}`, "secret"},
		{"listed, with escapes", `{"x":"hunter2\u002dis-long\n"}`, `{"x":"scrubbed-secret-2\n"}`, "secret"},
		{"listed, with quotes", `{"x":"quote\"and\\slash"}`, `{"x":"scrubbed-secret-3"}`, "secret"},
		{"listed, in JSON in a string", `{"x":"{\"y\":\"quote\\\"and\\\\slash\"}"}`, `{"x":"{\"y\":\"scrubbed-secret-3\"}"}`, "secret"},
		{"credential in JSON in a string", `{"x":"{\"apiKey\":\"abcdef\",\"n\":1}"}`, `{"x":"{\"apiKey\":\"scrubbed\",\"n\":1}"}`, "credential"},
		{"key in JSON in a string, escaped", `{"x":"{\"y\":\"\\u0061tk_k1_abcdefghijklmnopqrstuvwxyz012345\"}"}`, `{"x":"{\"y\":\"` + key1 + `\"}"}`, "api-key"},
		{"key in JSON in a string in JSON in a string, escaped", `{"x":"[\"{\\\"y\\\":\\\"\\\\u0061tk_k1_abcdefghijklmnopqrstuvwxyz012345\\\"}\"]"}`, `{"x":"[\"{\\\"y\\\":\\\"` + key1 + `\\\"}\"]"}`, "api-key"},
		{"listed, escaped in a string with incomplete JSON", `{"x":"log: {\"y\":\"hunter2\\u002dis-long\""}`, `{"x":"log: {\"y\":\"scrubbed-secret-2\""}`, "secret"},
		{"name escaped in JSON in a string", `{"x":"{\"api\\u004bey\":\"ab\"}"}`, `{"x":"{\"api\\u004bey\":\"scrubbed\"}"}`, "credential"},
		{"noise that begins with an escape", `\u0061tk_k1_abcdefghijklmnopqrstuvwxyz012345`, key1, "api-key"},
		{"noise that ends with an escape", `hunter2-is-lon\u0067`, "scrubbed-secret-2", "secret"},
		{"noise with an escaped key", `got \u0061tk_k1_abcdefghijklmnopqrstuvwxyz012345`, `got ` + key1, "api-key"},
		{"environment in a string", `{"x":"A=1\nAPI_KEY=abcdef\nB=2"}`, `{"x":"A=1\nAPI_KEY=scrubbed\nB=2"}`, "credential"},
		{"URL", `{"x":"https://bob:s3cret@h/p?token=abcdef&a=1"}`, `{"x":"https://bob:scrubbed@h/p?token=scrubbed&a=1"}`, "credential"},
		{"several in a line", "api_key=abcdef token=ghijkl password=mnopqr token=stuvwx", "api_key=scrubbed token=scrubbed password=scrubbed token=scrubbed", "credential"},
		{"another order", "token=ghijkl api_key=abcdef", "token=scrubbed api_key=scrubbed", "credential"},
		{"one after the other", `"://bob:s3cret@://bob:s3cret@"`, `"://bob:scrubbed@://bob:scrubbed@"`, "credential"},
		{"after the name of a file", "/run/token: abcdef", "/run/token: scrubbed", "credential"},
		{"a number", `{"password":1e+5}`, `{"password":0}`, "credential"},
		{"only a number", "12", "12", ""},
		{"placeholders", `{"password":"scrubbed-secret-1","x":"token=` + key1 + `"}`, `{"password":"scrubbed-secret-1","x":"token=` + key1 + `"}`, ""},
		{"longer than placeholders", `{"password":"scrubbed` + strings.Repeat("x", 64) + `","x":"atk_scrubbed1_` + strings.Repeat("x", 64) + `"}`, `{"password":"scrubbed","x":"` + key1 + `"}`, "api-key,credential"},
		{"names with hyphens", `{"x-token":"a","page-token":"b"}`, `{"x-token":"scrubbed","page-token":"b"}`, "credential"},
		{"not keys", `{"x":"MY_LONG_VARIABLE"}`, `{"x":"MY_LONG_VARIABLE"}`, ""},
		{"signed URLs", `["https://h/p?X-Amz-Signature=0123456789abcdef&a=1","https://h/p?sv=1&sig=abc%2Fdefgh%3D","s3?sig=short","sig=abcdefghij"]`,
			`["https://h/p?X-Amz-Signature=scrubbed&a=1","https://h/p?sv=1&sig=scrubbed","s3?sig=short","sig=abcdefghij"]`, "credential"},
		{"private keys", `{"x":"a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl+/==\n-----END OPENSSH PRIVATE KEY-----\nb","passphrase":"x","y":"-----BEGIN PUBLIC KEY-----\nab"}`,
			`{"x":"a\nscrubbed\nb","passphrase":"scrubbed","y":"-----BEGIN PUBLIC KEY-----\nab"}`, "credential"},
		{"a private key in JSON in a string", `{"x":"{\"k\":\"-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----\\n\",\"n\":1}"}`,
			`{"x":"{\"k\":\"scrubbed\\n\",\"n\":1}"}`, "credential"},
		{"private keys that are cut off", `{"x":"-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: AES\nMIIE","y":"{\"k\":\"-----BEGIN PRIVATE KEY-----\\nMI\",\"n\":1}"}`,
			`{"x":"scrubbed","y":"{\"k\":\"scrubbed\",\"n\":1}"}`, "credential"},
		{"other tokens", `["ghp_0123456789abcdefghij","eyJhbGciOi0.eyJzdWIiOjB.c2ln"]`, `["scrubbed","scrubbed"]`, "token"},
		{"names that begin like tokens", `["npm_config_user_agent_of_this_very_long_name_here","glpat-short","sk_live_x","hf_model_name_that_is_long_enough_to_match"]`,
			`["npm_config_user_agent_of_this_very_long_name_here","glpat-short","sk_live_x","hf_model_name_that_is_long_enough_to_match"]`, ""},
		{"keys of AWS", `{"AWS_SECRET_ACCESS_KEY":"wJalrXUtn/bPx","secretAccessKey":"x","text":"aws_secret_access_key = wJalrXUtn/bPx\n"}`,
			`{"AWS_SECRET_ACCESS_KEY":"scrubbed","secretAccessKey":"scrubbed","text":"aws_secret_access_key = scrubbed\n"}`, "credential"},
		{"home", `["/home/alice","/home/alice/x","file:///home/alice/x","/home/alice.","/home/alicent","/mnt/home/alice"]`,
			`["/home/user","/home/user/x","file:///home/user/x","/home/user.","/home/alicent","/mnt/home/alice"]`, "home"},
		{"home in another path", `["/mnt-/home/alice","/mnt./home/alice"]`, `["/mnt-/home/alice","/mnt./home/alice"]`, ""},
		{"home in text", `{"x":"a\n/home/alice/y\tb"}`, `{"x":"a\n/home/user/y\tb"}`, "home"},
		{"home, twice in a row", `"/home/alice/home/alice"`, `"/home/user/home/alice"`, "home"},
		{"host", `{"x":"on alices-laptop.local, not malices-laptop"}`, `{"x":"on host.local, not malices-laptop"}`, "host"},
		{"host in words", `["alices-laptopa","zalices-laptop","Aalices-laptop","alices-laptopZ","0alices-laptop","alices-laptop9","_alices-laptop","Àalices-laptop","alices-laptopÀ"]`,
			`["alices-laptopa","zalices-laptop","Aalices-laptop","alices-laptopZ","0alices-laptop","alices-laptop9","_alices-laptop","Àalices-laptop","alices-laptopÀ"]`, ""},
		{"host between other characters", "alices-laptop /alices-laptop: @alices-laptop[ `alices-laptop{ alices-laptop", "host /host: @host[ `host{ host", "host"},
		{"home in a name", `{"/home/alice/x":1}`, `{"/home/user/x":1}`, "home"},
		{"noise", "listening, key " + theKey + " in /home/alice", "listening, key " + key1 + " in /home/user", "api-key,home"},
		{"JSON that is invalid only in a secret", "{\"apiKey\":\"\x00abcd\",\"password\":[1]}", `{"apiKey":"scrubbed","password":[0]}`, "credential"},
		{"noise, not UTF-8", "\xff password=abcdef", "\xff password=scrubbed", "credential"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := testScrubber()
			got := string(s.Line([]byte(c.in)))
			if got != c.want {
				t.Errorf("scrubbed\n  %s\nbecomes\n  %s\nwant\n  %s", c.in, got, c.want)
			}
			if found := strings.Join(s.Found(), ","); found != c.found {
				t.Errorf("found %q, want %q", found, c.found)
			}
			if json.Valid([]byte(c.in)) && !json.Valid([]byte(got)) {
				t.Errorf("not valid JSON any more: %s", got)
			}
			if again := string(testScrubber().Line([]byte(got))); again != got {
				t.Errorf("scrubbed again\n  %s\nbecomes\n  %s", got, again)
			}
		})
	}
}

// The tokens are put together here, because tools that look for secrets in a repository would report them.
func TestScrubTokens(t *testing.T) {
	for prefix, length := range map[string]int{
		"glpat-": 20, "AIza": 35, "npm_": 36, "hf_": 34, "sk_live_": 24, "rk_test_": 24, "lin_api_": 40, "ntn_": 46,
		"dckr_pat_": 27, "pypi-AgEI": 150, "SG." + strings.Repeat("0", 22) + ".": 43,
	} {
		token := prefix + strings.Repeat("0", length)
		if got, want := string(testScrubber().Line([]byte(`["`+token+`","a`+token+`"]`))), `["scrubbed","a`+token+`"]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// In attache's own messages, the text after the name of a file or of a configuration key describes a
// problem and is not a secret.
func TestScrubProse(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"--api-key-file: /run/secrets/attache-token: there is no such file", ""},
		{`C:\keys\secret: permission denied`, ""},
		{"team.yaml:1:9: server.headers.Authorization: /run/key is open to others", ""},
		{`cannot start "/etc/passwd": permission denied`, ""},
		{"server.headers.X-Api-Key: stat /run/x: no such file", ""},
		{"the server answered: x-api-key: abcdef", "the server answered: x-api-key: scrubbed"},
		{"token: abcdef", "token: scrubbed"},
		{"/bin/x --token=abcdef", "/bin/x --token=scrubbed"},
		{"/run/token=abcdef", "/run/token=scrubbed"},
		{"https://h/p?token: abcdef", "https://h/p?token: scrubbed"},
		{`{"auth.token": "abcdef"}`, `{"auth.token": "scrubbed"}`},
		{"/run/token: hunter2-is-long", "/run/token: scrubbed-secret-1"},
		{"server.headers.Authorization: Bearer abcdefgh", "server.headers.Authorization: Bearer scrubbed"},
		{`/run/key:-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nabcdef`, "/run/key:scrubbed"},
		// Other programs use the same form.
		{"the server answered: config.token: abcdef", "the server answered: config.token: scrubbed"},
		{"invalid auth/api-key: abcdef", "invalid auth/api-key: scrubbed"},
		{"https://api.example.com/token: abcdef", "https://api.example.com/token: scrubbed"},
	} {
		s := NewScrubber(Secrets{Values: []string{"hunter2-is-long"}, Prose: true})
		if c.want == "" {
			c.want = c.in
		}
		if got := string(s.Line([]byte(c.in))); got != c.want {
			t.Errorf("%s\nbecomes %s\nwant    %s", c.in, got, c.want)
		}
	}
}

// NewKnownScrubber does not replace other texts that look like secrets.
func TestKnownScrubber(t *testing.T) {
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"
	s := NewKnownScrubber(Secrets{Values: []string{"my-secret", "short", "6-long"}, KeyPrefix: "shop"})
	tests := []struct{ in, want string }{
		{`{"password":"hunter22","a":"ghp_0123456789abcdefghij0123456789abcdef"}`, ""},
		{`{"a":"home is short"}`, ""},
		{`{"a":"6-long"}`, `{"a":"scrubbed-secret-3"}`},
		{`{"password":"hunter22\n","a":"ghp_0123456789abcdefghij0123456789abcdef"}`, ""},
		{`_x`, ""},
		{`\u006dy-secret`, `scrubbed-secret-1`},
		{`{"__":"shop_x7k2m4qa-ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"}`, ""},
		{`{"a":"my-secret","b":1}`, `{"a":"scrubbed-secret-1","b":1}`},
		{`{"my-secret":[]}`, `{"scrubbed-secret-1":[]}`},
		{`{"a":"my\u002dsecret"}`, `{"a":"scrubbed-secret-1"}`},
		{`{"a":"Bearer ` + jwt + `"}`, `{"a":"Bearer scrubbed"}`},
		{`{"a":"atk_x7k2m4qa_ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"}`, `{"a":"atk_scrubbed1_00000000000000000000000000000000"}`},
		{`{"a":"see shop_x7k2m4qa_ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"}`, `{"a":"see atk_scrubbed2_00000000000000000000000000000000"}`},
		{`{"a":"shop_create_order_of_many_things_with_a_long_name"}`, ""},
		{`{"a":"eyJhbGciOiJSUzI1NiJ9==.eyJzdWIiOiJhZGEifQ==.c2lnbmF0dXJl="}`, `{"a":"scrubbed"}`},
		{`{"a":"eyJhbGciOiJSUzI1NiJ9..aXY.Y2lwaGVy.dGFn"}`, `{"a":"scrubbed"}`},
		{`atk_x7k2m4qa_ABCDEFGHIJKLMNOPQRSTUVWXYZ234567`, `atk_scrubbed1_00000000000000000000000000000000`},
		{`{"x__":"atk_x7k2m4qa_ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"}`, `{"x__":"atk_scrubbed1_00000000000000000000000000000000"}`},
		{`no JSON with my-secret`, `no JSON with scrubbed-secret-1`},
	}
	for _, test := range tests {
		if test.want == "" {
			test.want = test.in
		}
		if got := string(s.Line([]byte(test.in))); got != test.want {
			t.Errorf("%s: got %s, want %s", test.in, got, test.want)
		}
	}
}

// A short host name is often a word, and localhost is every machine.
func TestScrubHost(t *testing.T) {
	for host, want := range map[string]string{"abc": "on abc", "abcd": "on host", "localhost": "on localhost", "host": "on host"} {
		s := NewScrubber(Secrets{Host: host})
		if got := string(s.Line([]byte("on " + host))); got != want || len(s.Found()) > 0 != (host == "abcd") {
			t.Errorf("%s: got %q, and found %q", host, got, s.Found())
		}
	}
}

func TestScrubWindows(t *testing.T) {
	s := NewScrubber(Secrets{Home: `C:\Users\Bob\`})
	in := `{"x":"C:\\Users\\Bob\\src","y":"{\"p\":\"C:\\\\Users\\\\Bob\"}"}`
	want := `{"x":"C:\\Users\\user\\src","y":"{\"p\":\"C:\\\\Users\\\\user\"}"}`
	if got := string(s.Line([]byte(in))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzScrub(f *testing.F) {
	for _, s := range []string{
		`{"apiKey":"` + theKey + `","x":["Bearer abcdefghi",{"password":[1,"2"]}]}`,
		`{"a":"\u0061tk_k1_abcdefghijklmnopqrstuvwxyz012345"}`, `[]`, `"`, `{"a\"":"/home/alice\\"}`,
		"000" + theKey, "{\"ApiKeY\":\"\x00000\",\"\":[{\"pAsswd\":[1]}]}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		s := testScrubber()
		got := s.Line(line)
		if !bytes.Equal(line, before) {
			t.Fatal("the line was changed in place")
		}
		if json.Valid(line) != json.Valid(got) && json.Valid(line) {
			t.Fatalf("%q became %q", line, got)
		}
		if again := testScrubber().Line(got); !bytes.Equal(again, got) {
			t.Fatalf("%q became %q, and then %q", line, got, again)
		}
		if bytes.Contains(got, []byte(theKey)) || bytes.Contains(got, []byte("hunter2-is-long")) {
			t.Fatalf("a secret is left in %q", got)
		}
		var v any
		if json.Unmarshal(got, &v) == nil {
			if text, _ := json.Marshal(v); bytes.Contains(text, []byte(theKey)) {
				t.Fatalf("a secret is left in %q, escaped", got)
			}
		}
	})
}

// Write writes a session that Read has returned, and Read then returns the same session.
func FuzzRead(f *testing.F) {
	const header = `{"version":1,"era":"modern","id_prefix":"own-","server":"git","given":{"--workspace":"/src"},"scrubbed":["home"]}` + "\n"
	for _, s := range []string{
		"", "\n", "{}", header, header + "\n", header + `{"t":0.5,"at":"client-in","frame":"{}"}`, header + `{"t":1e300,"at":"server-out","base64":"/w==","partial":true}` + "\n",
		header + `{"t":-0,"at":"server-in","oversize":true}` + "\n" + `{"at":"server-exit","frame":"{\"exit\":\"exit status 3\"}"}` + "\n" + `{"at":"client-out","fra`,
		header + `{"at":"server-out","frame":"<\u2028\ud800\n","partial":true}` + "\r\n", header + `{"at":"nowhere"}` + "\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		written := func(s *Session) []byte {
			var b bytes.Buffer
			testkit.Check(t, s.Write(&b))
			return b.Bytes()
		}
		text := written(first)
		second, err := Read(bytes.NewReader(text))
		if err != nil || second.Cut || len(second.Events) != len(first.Events) {
			t.Fatalf("%q is written as %q, which is read as %+v, %v", data, text, second, err)
		}
		for i, e := range first.Events {
			if got := second.Events[i]; got.At != e.At || !bytes.Equal(got.Line, e.Line) || (got.Line == nil) != (e.Line == nil) {
				t.Errorf("%+v is written and read as %+v", e, got)
			}
		}
		if again := written(second); !bytes.Equal(again, text) {
			t.Errorf("%q is written as %q, and that as %q", data, text, again)
		}
	})
}

// The lines of the client tell the era. A client of both eras tries the modern one first.
func TestEra(t *testing.T) {
	const (
		initialize = `{"method":"initialize"}`
		discover   = `{"method":"server/discover"}`
		modern     = `{"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
		legacy     = `{"method":"x"}`
	)
	for _, test := range []struct {
		at    string
		lines []string
		want  string
	}{
		{ClientIn, []string{legacy}, ""},
		{ClientIn, []string{initialize, legacy}, "legacy"},
		{ClientIn, []string{discover}, "modern"},
		{ClientIn, []string{modern}, "modern"},
		{ClientIn, []string{discover, initialize}, "legacy"},
		{ClientIn, []string{initialize, modern}, "legacy"},
		{ServerOut, []string{initialize, modern}, ""},
	} {
		r := new(Recorder)
		for _, line := range test.lines {
			r.detectEra(Event{At: test.at, Line: []byte(line)})
		}
		if r.header.Era != test.want {
			t.Errorf("%s %q: the era is %q", test.at, test.lines, r.header.Era)
		}
	}
}

// A line is written at once, so that it is not lost if attache is killed.
func TestRecorderWritesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		r := NewRecorder(&file, Options{})
		synctest.Wait() // it waits for lines
		r.Watch(ClientIn, []byte("a\n"))
		if synctest.Wait(); !strings.Contains(file.String(), `"frame":"a"`) {
			t.Errorf("written: %s", file.String())
		}
		testkit.Check(t, r.Close())
	})
}

func TestRecorder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	f, err := os.Create(path)
	testkit.Check(t, err)
	r := NewRecorder(f, Options{IDPrefix: "own-", Secrets: Secrets{Home: "/home/alice"}})
	line := []byte(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}` + "\n")
	r.Watch(ClientIn, line)
	copy(line, "overwritten")
	r.Watch(ClientIn, []byte(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"x":"/home/alice"}}`+"\n"))
	r.Watch(ServerOut, nil)
	testkit.Check(t, r.Close())
	r.Watch(ServerOut, []byte("too late\n"))
	testkit.Check(t, f.Close())
	data, err := os.ReadFile(path)
	testkit.Check(t, err)
	s, err := Read(bytes.NewReader(data))
	testkit.Check(t, err)
	if h := s.Header; h.Era != "legacy" || h.IDPrefix != "own-" || !slices.Equal(h.Scrubbed, []string{"home"}) {
		t.Errorf("header %+v", h)
	}
	if len(s.Events) != 3 || !strings.Contains(string(s.Events[0].Line), "server/discover") || s.Events[2].Line != nil {
		t.Errorf("events %+v", s.Events)
	}
	if bytes.Contains(data, []byte("alice")) {
		t.Errorf("a secret reached the disk:\n%s", data)
	}
}

// The header of a pipe cannot be completed, which is no failure: the first one names all that may be scrubbed.
func TestRecorderOnAPipe(t *testing.T) {
	from, to, err := os.Pipe()
	testkit.Check(t, err)
	defer from.Close()
	r := NewRecorder(to, Options{Failed: func(err error) { t.Error(err) }})
	r.Watch(ClientIn, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"))
	err = errors.Join(r.Close(), to.Close())
	s, failed := Read(from)
	if err != nil || failed != nil || len(s.Events) != 1 || !slices.Equal(s.Header.Scrubbed, allNames) {
		t.Errorf("Close: %v, Read: %+v, %v", err, s, failed)
	}
}

// A fullDisk fails after room writes. It counts all writes.
type fullDisk struct{ room, tries int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.tries++; d.tries > d.room {
		return 0, errors.New("no space left on device")
	}
	return len(b), nil
}

func TestRecorderOnAFullDisk(t *testing.T) {
	var failures []error
	disk := &fullDisk{}
	r := NewRecorder(disk, Options{Failed: func(err error) { failures = append(failures, err) }})
	for range 100 {
		r.Watch(ClientIn, []byte("x\n"))
	}
	err := r.Close()
	if err == nil || len(failures) != 1 || disk.tries != 1 {
		t.Errorf("Close: %v, failures %v, %d tries", err, failures, disk.tries)
	}
}

// A blockedDisk blocks its writes until the channel is closed.
type blockedDisk chan struct{}

func (d blockedDisk) Write(b []byte) (int, error) { <-d; return len(b), nil }

func TestRecorderOnABlockedDisk(t *testing.T) {
	disk := make(blockedDisk)
	r := newRecorder(disk, Options{}, 1<<20)
	chunk := make([]byte, 1<<10)
	for range 3000 {
		r.Watch(ClientIn, chunk) // does not block
	}
	close(disk)
	if err := r.Close(); !errors.Is(err, ErrSlow) {
		t.Errorf("Close: %v", err)
	}
}

// A secret that becomes known later is scrubbed from then on, together with the earlier secrets.
func TestLaterSecrets(t *testing.T) {
	var later []string
	for _, s := range []*Scrubber{
		NewScrubber(Secrets{Values: []string{"first-secret"}, Later: func() []string { return later }}),
		NewKnownScrubber(Secrets{Values: []string{"first-secret"}, Later: func() []string { return later }}),
	} {
		for _, step := range []struct {
			later []string
			want  string
		}{
			{nil, `{"a":"scrubbed-secret-1 token-one token-two"}`},
			{[]string{"token-one"}, `{"a":"scrubbed-secret-1 scrubbed-token-1 token-two"}`},
			{[]string{"token-one", "token-two"}, `{"a":"scrubbed-secret-1 scrubbed-token-1 scrubbed-token-2"}`},
		} {
			later = step.later
			if got := string(s.Line([]byte(`{"a":"first-secret token-one token-two"}`))); got != step.want {
				t.Errorf("got %s, want %s", got, step.want)
			}
		}
		if got := string(s.Line([]byte("token-two"))); got != "scrubbed-token-2" { // without the first secret
			t.Errorf("got %s", got)
		}
	}
}

// A scrubber that serves many peers stores no more than a bounded part of the texts that look like keys,
// and replaces all of them.
func TestKeysAreBounded(t *testing.T) {
	s := NewScrubber(Secrets{})
	first := []byte("atk_first_12345678")
	want := string(s.Line(first))
	for i := range 2 * maxKeys {
		s.Line(fmt.Appendf(nil, "atk_%d_12345678", i))
	}
	for _, key := range []string{"atk_more_12345678", "atk_" + strings.Repeat("long", maxKey) + "_12345678"} {
		got := s.Line([]byte(key))
		if strings.Contains(string(got), "12345678") || !bytes.Equal(s.Line(got), got) {
			t.Errorf("%s became %s", key, got)
		}
	}
	if got := string(s.Line(first)); got != want {
		t.Errorf("the first key became %s, and before %s", got, want)
	}
	if len(s.keys) > maxKeys {
		t.Errorf("%d keys are stored", len(s.keys))
	}
}
