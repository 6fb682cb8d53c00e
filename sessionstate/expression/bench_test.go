package expression

import "testing"

func BenchmarkEval(b *testing.B) {
	for _, test := range []struct{ name, src string }{
		{"simple", `session.trust == "sandboxed"`},
		{"member", `"guest" in principal.roles`},
		{"session", `session.workspace.path.startsWith("/work/")`},
		{"tool", `tool.name.startsWith("git_")`},
		{"annotation", `tool.annotations.readOnlyHint`},
		{"argument", `has(arguments.path) && arguments.path.startsWith(session.workspace.path)`},
		{"loop", `arguments.list.all(x, x in ["a", "b", "c"])`},
	} {
		p := compile(b, test.src, Bool)
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			in := inputs()
			for b.Loop() {
				p.Eval(in)
			}
		})
	}
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		in := inputs()
		for b.Loop() {
			decodeObject(in.Arguments)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	for _, src := range []string{`session.trust == "sandboxed"`, `tool.name.startsWith("git_") && has(arguments.path)`} {
		b.Run(src[:12], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Compile(src, Bool)
			}
		})
	}
}
