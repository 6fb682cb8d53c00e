package access

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/kept"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

func when(t testing.TB, src string) *expression.Program {
	t.Helper()
	p, err := expression.Compile(src, expression.Bool)
	testkit.Check(t, err)
	return p
}

func compile(t testing.TB, o Options) *Shared {
	t.Helper()
	s, err := Compile(o)
	testkit.Check(t, err)
	return s
}

func principal(permissions ...string) *sessionstate.Context {
	return &sessionstate.Context{
		Trust:     sessionstate.Fact{Value: "direct", Source: sessionstate.Operator},
		Principal: &sessionstate.Principal{User: "ada", Tenant: "acme", Permissions: permissions, Roles: permissions},
	}
}

// A name that takes too long to match does not block the session: the call is refused.
func TestNameTooLong(t *testing.T) {
	s := compile(t, Options{Rules: []Rule{{Tools: []string{"*a*a*a*a*a*a*b*c"}, Deny: true}}})
	for _, n := range []int{200, 1 << 20} {
		q := request{inputs: &expression.Inputs{Tool: strings.Repeat("a", n) + "c"}}
		for _, c := range []*candidates{s.all, s.candidates(q.inputs.Tool)} {
			if d := s.decide(c, q, nil); d.allowed || d.err != glob.ErrTooLong {
				t.Errorf("a name of %d letters that takes too long: %v", n, d)
			}
		}
	}
}

func TestExplain(t *testing.T) {
	s := compile(t, Options{Default: Deny, Rules: []Rule{
		{Tools: []string{"other"}},
		{Tools: []string{"*"}, Deny: true, When: when(t, `session.trust == "sandboxed"`)},
		{Tools: []string{"get_*"}, Deny: true, When: when(t, `has(arguments.all)`)},
		{Tools: []string{"get_*"}, Require: []string{"read"}},
	}})
	show := func(q request) string {
		var out []string
		d := s.decide(s.all, q, func(s step) { out = append(out, fmt.Sprint(s.rule, " ", s.reason)) })
		if same := s.decide(s.candidates(q.inputs.Tool), q, nil); same.String() != d.String() {
			t.Errorf("the candidates say %s, all rules %s", same.String(), d.String())
		}
		return strings.Join(append(out, d.String()), "\n")
	}
	for _, test := range []struct {
		q    request
		want string
	}{
		{request{inputs: &expression.Inputs{Tool: "get_x", Context: principal("read")}},
			"0 it is for other tools\n1 its condition does not hold\n2 its condition does not hold\n" +
				"3 the principal holds what it requires\nallowed: access.rules[3]: the principal holds what it requires"},
		{request{inputs: &expression.Inputs{Tool: "get_x", Context: principal("read")}, listing: true},
			"0 it is for other tools\n1 its condition does not hold\n2 its condition depends on arguments, which a list has none of\n" +
				"3 the principal holds what it requires\nallowed: access.rules[3]: the principal holds what it requires"},
		{request{inputs: &expression.Inputs{Tool: "put_x"}},
			"0 it is for other tools\n1 its condition does not hold\n2 it is for other tools\n3 it is for other tools\nrefused: access.default: no rule decides"},
	} {
		if got := show(test.q); got != test.want {
			t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
		}
	}
}

// With Hide, lists are filtered if a rule or the default may refuse whatever the arguments are.
func TestLists(t *testing.T) {
	tools := []string{"x"}
	for name, test := range map[string]struct {
		o    Options
		want bool
	}{
		"a permission is required":          {Options{Hide: true, Rules: []Rule{{Tools: tools, Require: []string{"read"}}}}, true},
		"calls are denied":                  {Options{Hide: true, Rules: []Rule{{Tools: tools, Deny: true}}}, true},
		"the default denies":                {Options{Hide: true, Default: Deny}, true},
		"a condition that may fail":         {Options{Hide: true, Rules: []Rule{{Tools: tools, When: when(t, `session.id.matches("^a")`)}}}, true},
		"calls are allowed":                 {Options{Hide: true, Rules: []Rule{{Tools: tools}}}, false},
		"the condition reads the arguments": {Options{Hide: true, Rules: []Rule{{Tools: tools, Deny: true, When: when(t, `arguments.x == 1`)}}}, false},
		"Hide is not set":                   {Options{Rules: []Rule{{Tools: tools, Deny: true}}}, false},
	} {
		if got := compile(t, test.o).Lists(); got != test.want {
			t.Errorf("%s: Lists is %v", name, got)
		}
	}
}

// A refusal is logged as a warning only if a rule could not be evaluated.
func TestRefusalLevel(t *testing.T) {
	for condition, want := range map[string]string{"true": "INFO", `arguments.missing == 1`: "WARN"} {
		var log strings.Builder
		s := compile(t, Options{Rules: []Rule{{Tools: []string{"x"}, Deny: true, When: when(t, condition)}}})
		c := s.Connect(ConnOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
		m := wire.NewMessage(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`))
		d, _ := c.judge(m, principal(), "x", false)
		c.logRefusal(new(middleware.Call), principal(), "x", &d)
		if !strings.Contains(log.String(), "level="+want) {
			t.Errorf("%s: want %s, got %s", condition, want, log.String())
		}
	}
}

// A rule whose condition reads arguments does not hide, whatever it would decide.
func TestListing(t *testing.T) {
	onArguments := when(t, `arguments.x == 1`)
	for _, test := range []struct {
		name    string
		rule    Rule
		listing bool // whether the tool is listed with Default: Deny
	}{
		{"denies some calls", Rule{Deny: true, When: onArguments}, false},
		{"allows some calls", Rule{When: onArguments}, true},
		{"requires for some calls, held", Rule{Require: []string{"read"}, When: onArguments}, true},
		{"requires for some calls, not held", Rule{Require: []string{"write"}, When: onArguments}, false},
		{"allows", Rule{}, true},
	} {
		test.rule.Tools = []string{"*"}
		rules := []Rule{test.rule}
		s := compile(t, Options{Default: Deny, Rules: rules})
		q := request{inputs: &expression.Inputs{Tool: "x", Context: principal("read")}, listing: true}
		if d := s.decide(s.all, q, nil); d.allowed != test.listing {
			t.Errorf("%s: %s", test.name, d.String())
		}
		if s = compile(t, Options{Rules: rules}); !test.listing && !s.decide(s.all, q, nil).allowed {
			t.Errorf("%s: hidden though calls may be allowed", test.name)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	text, _ := expression.Compile(`principal.tenant`, expression.Any)
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{Default: "maybe"}, `access.default is "maybe": write allow or deny`},
		{Options{Rules: []Rule{{}}}, "access.rules[0]: no tools are named"},
		{Options{Rules: []Rule{{Tools: []string{"*"}}, {Tools: []string{""}}}}, "access.rules[1]: an empty pattern"},
		{Options{Rules: []Rule{{Tools: []string{"*"}, Deny: true, Require: []string{"a"}}}}, "contradict"},
		{Options{Rules: []Rule{{Tools: []string{"*"}, Message: "No."}}}, "has a message for refusals and allows"},
		{Options{Rules: []Rule{{Tools: []string{"*"}, Require: []string{""}}}}, "an empty permission"},
		{Options{Rules: []Rule{{Tools: []string{"*"}, When: text}}}, "when is not a condition"},
		{Options{Rules: []Rule{{Tools: []string{"*"}, When: when(t, `tool.annotations.readOnlyHint`)}}}, "would allow a call because of annotations"},
		{Options{Rates: []Rate{{Tools: []string{"*"}, Per: "day", Limit: 1, Window: 1}}}, `access.rates[0]: per is "day"`},
		{Options{Rates: []Rate{{Tools: []string{"*"}, Per: PerUser}}}, "a rate needs a limit"},
		{Options{Rates: []Rate{{Per: PerUser, Limit: 1, Window: 1}}}, "no tools are named"},
	} {
		if _, err := Compile(test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Compile: %v; want %q", err, test.want)
		}
	}
	if _, err := Compile(Options{}); err != nil {
		t.Errorf("nothing configured: %v", err)
	}
}

func TestCheckOrder(t *testing.T) {
	rule := func(tools ...string) Rule { return Rule{Tools: tools} }
	conditional := Rule{Tools: []string{"*"}, When: when(t, `session.trust == "direct"`)}
	for _, test := range []struct {
		name    string
		rules   []Rule
		reached bool
	}{
		{"all, then one", []Rule{rule("*"), rule("drop")}, false},
		{"all, then all", []Rule{rule("*"), conditional}, false},
		{"one of several covers", []Rule{rule("a"), rule("x", "get_*"), rule("get_y", "x")}, false},
		{"the same", []Rule{rule("a*b"), rule("a*b")}, false},
		{"a narrower pattern", []Rule{rule("get_*"), rule("get_?_*")}, false},
		{"one, then all", []Rule{rule("drop"), rule("*")}, true},
		{"a condition does not always decide", []Rule{conditional, rule("drop")}, true},
		{"half of its tools", []Rule{rule("get_*"), rule("get_x", "put_x")}, true},
		{"a wider pattern", []Rule{rule("get_x*"), rule("get_*")}, true},
		{"patterns that may overlap", []Rule{rule("*_x"), rule("get_x")}, true},
		{"an escaped star", []Rule{rule(`a\*`), rule("ab")}, true},
	} {
		if err := CheckOrder(test.rules, len(test.rules)-1); (err == nil) != test.reached {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestParseLimit(t *testing.T) {
	for s, want := range map[string]string{
		"60/minute": "60 1m0s", "5/s": "5 1s", " 100 / 15m ": "100 15m0s", "1/day": "1 24h0m0s", "2/90s": "2 1m30s",
		"": "err", "60": "err", "0/s": "err", "-1/s": "err", "x/s": "err", "1/": "err", "1/-5s": "err", "1/fortnight": "err",
	} {
		n, d, err := ParseLimit(s)
		got := fmt.Sprint(n, " ", d)
		if err != nil {
			got = "err"
		}
		if got != want {
			t.Errorf("ParseLimit(%q) = %s, %v; want %s", s, got, err, want)
		}
	}
}

// counters are rates and their buckets.
type counters struct {
	limiters *Limiters
	rates    []*buckets
}

func newCounters(rates ...Rate) *counters {
	l := new(Limiters)
	return &counters{l, l.buckets(rates, "")}
}

// makeCalls makes n calls and returns how many were allowed.
func makeCalls(c *counters, n int, view *sessionstate.Context, tool string, now time.Time) (allowed int) {
	for range n {
		d := decision{allowed: true, rate: none}
		c.limiters.take(c.rates, &d, view, tool, attempt{now: now})
		if d.allowed {
			allowed++
		}
	}
	return allowed
}

func TestRatesPer(t *testing.T) {
	start := time.Now()
	ada, eve, ada2 := principal(), principal(), principal()
	eve.Principal = &sessionstate.Principal{User: "eve", Tenant: "acme"}
	ada2.Principal = &sessionstate.Principal{User: "ada", Tenant: "other"}
	for per, want := range map[Per][]int{ // what is left for eve, for the other ada, for another tool of ada's
		PerUser:    {3, 3, 0},
		PerTenant:  {0, 3, 0},
		PerTool:    {0, 0, 3},
		PerSession: {0, 3, 0},
	} {
		r := newCounters(Rate{Tools: []string{"*"}, Per: per, Limit: 3, Window: time.Hour})
		if n := makeCalls(r, 5, ada, "x", start); n != 3 {
			t.Errorf("per %s: %d calls allowed of a burst of 3", per, n)
		}
		got := []int{makeCalls(r, 5, eve, "x", start), makeCalls(r, 5, ada2, "x", start), makeCalls(r, 5, ada, "y", start)}
		if !slices.Equal(got, want) {
			t.Errorf("per %s: others have %v left, want %v", per, got, want)
		}
	}
}

// Names that a client invents cost bounded memory and give it no new bucket.
func TestRatesAreBounded(t *testing.T) {
	now := time.Now()
	r := newCounters(Rate{Tools: []string{"*"}, Per: PerTool, Limit: 2, Window: time.Minute})
	makeCalls(r, 3, nil, "x", now)
	for i := range 3 * maxBuckets {
		makeCalls(r, 1, nil, fmt.Sprint("made up ", i), now)
	}
	if n := len(r.rates[0].byKey); n != maxBuckets || r.rates[0].order.Len() != n {
		t.Errorf("%d buckets are kept, want %d", n, maxBuckets)
	}
	if n := makeCalls(r, 1, nil, "x", now); n != 0 {
		t.Error("a flood of names has refilled a bucket")
	}
	if n := makeCalls(r, 3, nil, "new", now); n != 0 {
		t.Errorf("%d calls allowed of the bucket that the rest shares, which is empty", n)
	}
	now = now.Add(2 * time.Minute)
	if n := makeCalls(r, 3, nil, "new", now); n != 2 {
		t.Errorf("%d calls allowed once others are idle, want 2", n)
	}
}

// A user who invents sessions takes no calls from the sessions of others.
func TestInventedSessionsAreTheirUsers(t *testing.T) {
	now := time.Now()
	r := newCounters(Rate{Tools: []string{"*"}, Per: PerSession, Limit: 2, Window: time.Hour})
	session := func(user, id string) *sessionstate.Context {
		view := principal()
		view.Principal = &sessionstate.Principal{User: user, Tenant: "acme"}
		view.Session.Value = id
		return view
	}
	for i := range maxBuckets + 10 {
		makeCalls(r, 1, session("eve", fmt.Sprint("made up ", i)), "x", now)
	}
	for i, want := range []int{2, 0} { // the second session of ada shares the bucket of the first
		if n := makeCalls(r, 3, session("ada", fmt.Sprint("ada's ", i)), "x", now); n != want {
			t.Errorf("%d calls allowed in session %d of another user, want %d", n, i, want)
		}
	}
	if n := makeCalls(r, 1, session("eve", "one more"), "x", now); n != 0 {
		t.Error("an invented session has got more calls")
	}
	for i := range maxBuckets {
		makeCalls(r, 1, session(fmt.Sprint("user ", i), "new"), "x", now)
	}
	n := 0
	for i := range 3 {
		n += makeCalls(r, 1, session("bob", fmt.Sprint("bob's ", i)), "x", now)
	}
	if n != 0 {
		t.Errorf("%d calls allowed to one of too many users, want those of the bucket that they share", n)
	}
	if n := len(r.rates[0].byKey); n != maxBuckets {
		t.Errorf("%d buckets are kept, want %d", n, maxBuckets)
	}
	if n := len(r.rates[0].rests); n != maxBuckets+1 {
		t.Errorf("%d buckets are kept for the rest, want %d", n, maxBuckets+1)
	}
}

// A long name costs no more memory than a short one, and has a bucket of its own.
func TestLongNamesAreNotKept(t *testing.T) {
	now := time.Now()
	r := newCounters(Rate{Tools: []string{"*"}, Per: PerTool, Limit: 2, Window: time.Minute})
	for _, end := range []string{"a", "b"} {
		if n := makeCalls(r, 3, nil, strings.Repeat("x", 1<<20)+end, now); n != 2 {
			t.Errorf("%d calls allowed of a burst of 2", n)
		}
	}
	for key := range r.rates[0].byKey {
		if len(key.name) > kept.Max {
			t.Errorf("%d bytes are kept of a name", len(key.name))
		}
	}
}

// A configuration reload refills no bucket, unless the rate changed.
func TestReloadKeepsBuckets(t *testing.T) {
	now := time.Now()
	hourly := Rate{Tools: []string{"*"}, Per: PerUser, Limit: 2, Window: time.Hour}
	l := new(Limiters)
	take := func(rates ...Rate) int {
		return makeCalls(&counters{l, l.buckets(rates, "")}, 3, nil, "x", now)
	}
	if n := take(hourly); n != 2 {
		t.Fatalf("%d calls allowed of 2", n)
	}
	daily := hourly
	daily.Window = 24 * time.Hour
	if n := take(daily); n != 2 {
		t.Errorf("%d calls allowed of another rate's 2", n)
	}
	take() // the rate is removed for a while
	if n := take(hourly); n != 0 {
		t.Errorf("%d calls allowed of a bucket that is empty", n)
	}
	// Two rates that are equal are two.
	if both := l.buckets([]Rate{hourly, hourly}, ""); both[0] == both[1] {
		t.Error("two equal rates share a bucket")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Now()
	r := newCounters(Rate{Tools: []string{"*"}, Per: PerUser, Limit: 7, Window: time.Minute, Burst: 1})
	makeCalls(r, 1, nil, "x", now)
	for range 20 {
		d := decision{allowed: true, rate: none}
		r.limiters.take(r.rates, &d, nil, "x", attempt{now: now})
		if d.allowed || d.retryAfter <= 0 || d.retryAfter > 9*time.Second {
			t.Fatalf("%s, retry after %v", d.String(), d.retryAfter)
		}
		now = now.Add(d.retryAfter)
		if makeCalls(r, 1, nil, "x", now) != 1 {
			t.Fatal("refused after the time that the refusal names")
		}
		// A clock that is set back neither takes nor gives tokens.
		if makeCalls(r, 1, nil, "x", now.Add(-time.Hour)) != 0 {
			t.Fatal("a clock that goes back gives a call")
		}
	}
}

// A call that several rates refuse may be tried again when the last of them has a token.
func TestRetryAfterTheLast(t *testing.T) {
	minute := Rate{Tools: []string{"*"}, Per: PerUser, Limit: 1, Window: time.Minute}
	hour := Rate{Tools: []string{"*"}, Per: PerUser, Limit: 1, Window: time.Hour}
	for _, rates := range [][]Rate{{minute, hour}, {hour, minute}, {hour, hour}} {
		now := time.Now()
		r := newCounters(rates...)
		makeCalls(r, 1, nil, "x", now)
		d := decision{allowed: true, rate: none}
		r.limiters.take(r.rates, &d, nil, "x", attempt{now: now})
		if d.allowed || d.retryAfter <= time.Minute || rates[d.rate].Window != time.Hour || rates[0].Window == rates[1].Window && d.rate != 0 {
			t.Errorf("rates per %v and %v: %s, of rate %d, retry after %v", rates[0].Window, rates[1].Window, d.String(), d.rate, d.retryAfter)
		}
	}
}

func TestRateCheck(t *testing.T) {
	whole := Rate{Tools: []string{"*"}, Per: PerUser, Limit: 1, Window: 1}
	for what, spoil := range map[string]func(*Rate){
		"per": func(r *Rate) { r.Per = "" }, "limit": func(r *Rate) { r.Limit = 0 }, "window": func(r *Rate) { r.Window = 0 },
		"burst": func(r *Rate) { r.Burst = -1 },
	} {
		r := whole
		if err := r.Check(); err != nil {
			t.Error(err)
		}
		if spoil(&r); r.Check() == nil {
			t.Errorf("a rate with a wrong %s is valid", what)
		}
	}
}

// twentyRules returns twenty rules like those of attache-bench.
func twentyRules(t testing.TB, cel bool) []Rule {
	var rules []Rule
	for i := range 18 {
		r := Rule{Tools: []string{fmt.Sprintf("team%d_*", i)}, Require: []string{"records:read"}}
		if i%3 == 0 {
			r = Rule{Tools: []string{fmt.Sprintf("*_delete%d", i)}, Deny: true}
		}
		rules = append(rules, r)
	}
	condition := `session.trust == "sandboxed"`
	if cel {
		condition = `has(arguments.path) && arguments.path.startsWith("/etc")`
	}
	return append(rules,
		Rule{Tools: []string{"*"}, Deny: true, When: when(t, condition)},
		Rule{Tools: []string{"git_*"}, Require: []string{"records:read"}, When: when(t, `principal.tenant != ""`)})
}

func BenchmarkDecide(b *testing.B) {
	for _, test := range []struct {
		name string
		cel  bool
	}{{"simple", false}, {"cel", true}} {
		b.Run(test.name, func(b *testing.B) {
			s := compile(b, Options{Default: Deny, Rules: twentyRules(b, test.cel)})
			view := principal("records:write", "records:read")
			in := new(expression.Inputs)
			arguments := []byte(`{"path":"/work/a","n":3}`)
			names := glob.Names[*candidates]{Find: s.candidates}
			b.ReportAllocs()
			for b.Loop() {
				in.Context, in.Tool, in.Arguments = view, "git_status", arguments
				if d := s.decide(names.Of(in.Tool), request{inputs: in}, nil); !d.allowed {
					b.Fatal(d.String())
				}
				in.Clear()
			}
		})
	}
	b.Run("rates", func(b *testing.B) {
		r := newCounters(Rate{Tools: []string{"*"}, Per: PerTenant, Limit: 1e9, Window: time.Second})
		view := principal()
		b.ReportAllocs()
		for b.Loop() {
			d := decision{allowed: true}
			r.limiters.take(r.rates, &d, view, "git_status", attempt{now: time.Now()})
		}
	})
}
