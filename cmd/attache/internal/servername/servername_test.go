package servername

import (
	"strings"
	"testing"
)

func TestServerName(t *testing.T) {
	for command, want := range map[string]string{
		"":                    "",
		"/usr/bin/git-server": "git-server",
		"server.exe --port 1": "server",
		"node build/index.js": "node",
		"sh -c npx":           "sh",

		"https://mcp.example.com/mcp":                                            "mcp.example.com",
		"npx -y mcp-remote@latest https://mcp.example.com/mcp 3334":              "mcp.example.com",
		"npx --registry https://r.example/ mcp-remote https://mcp.example.com:8": "mcp.example.com",
		"cmd /c npx mcp-remote --debug http://127.0.0.1:8333/git":                "127.0.0.1",
		"node /opt/node_modules/mcp-remote/dist/proxy.js https://a.example":      "a.example",
		"mcp-remote https://a.example --header X:https://b.example":              "a.example",
		"npx -p mcp-remote mcp-remote-client https://a.example/sse":              "a.example",
		"npx -y mcp-remote":                           "mcp-remote",
		"npx -y @scope/mcp-remote https://a.example":  "@scope/mcp-remote",
		"npx -y server-x --url https://a.example/mcp": "server-x",

		"npx -y @cyanheads/git-mcp-server":                         "@cyanheads/git-mcp-server",
		"/opt/node/bin/npx @scope/server-x@1.2.3 --root /src":      "@scope/server-x",
		"npx.cmd --yes server-x@latest":                            "server-x",
		"npx --package=@scope/server-x server-x-bin":               "@scope/server-x",
		"npx -y -p @scope/server-x@2 server-x-bin":                 "@scope/server-x",
		"npx -- server-x":                                          "server-x",
		"npx --registry https://u:p@registry.example/ -y server-x": "server-x",
		"cmd /c npx -y server-x":                                   "server-x",
		`C:\Windows\System32\cmd.exe /C npx -y server-x`:           "server-x",
		"bunx server-x":                                            "server-x",
		"bun x server-x":                                           "server-x",
		"deno run -A npm:server-x":                                 "server-x",
		"deno run --allow-env=A,B --allow-net npm:@scope/server-x": "@scope/server-x",
		"deno run -N -R=x --node-modules-dir=auto jsr:@a/b@1 io":   "@a/b",
		"deno run --allow-net -E jsr:/@a/b@^1.2/cli mcp":           "@a/b",
		"npm exec -y server-x":                                     "server-x",
		"npm x -- server-x":                                        "server-x",
		"pnpm dlx server-x":                                        "server-x",
		"yarn dlx -q server-x":                                     "server-x",
		"uvx mcp-server-git --repository /src":                     "mcp-server-git",
		"uvx mcp-server-git@2025.1":                                "mcp-server-git",
		"uvx --python 3.12 --from mcp-server-git[all]==1.0 serve":  "mcp-server-git",
		"uvx --from git+https://github.com/oraios/serena serena":   "serena",
		"uvx --from=./dist/x.whl --with y serve --root /src":       "serve",
		"pipx run --spec git+https://u:p@host.example/x server-x":  "server-x",
		"npx -y --package github:owner/repo server-x":              "server-x",
		"uvx --from git+https://host.example/x":                    "uvx",
		"uv tool run mcp-server-git":                               "mcp-server-git",
		"pipx run mcp-server-git":                                  "mcp-server-git",
		"python3 -m mcp_server_git --repository /src":              "mcp_server_git",
		"python3.12 -u -m mcp_server_git":                          "mcp_server_git",
		"docker run -i --rm -e API_KEY=hunter22 mcp/git":           "mcp/git",
		"docker run --rm -it --env-file x ghcr.io/github/server:1": "ghcr.io/github/server",
		"podman run -i --rm localhost:5000/x/server@sha256:00ff":   "localhost:5000/x/server",
		"docker run -eAPI_KEY -p8080:80 mcp/git hunter22":          "mcp/git",
		"docker run -itd -v /a:/b -ite API_KEY mcp/git hunter22":   "mcp/git",
		"docker container run --name=n -i mcp/git --flag":          "mcp/git",
		"podman run --replace --name n -i mcp/git --flag":          "mcp/git",
		"podman run -i --rm --env-host mcp/git hunter22":           "mcp/git",

		"node /x/node_modules/@scope/server-x/dist/index.js --root /src":       "@scope/server-x",
		`node.exe C:\x\node_modules\server-x\index.js`:                         "server-x",
		"/x/node_modules/a/node_modules/server-x/bin.js":                       "server-x",
		"node /x/node_modules/.bin/server-x":                                   "node",
		"node /x/node_modules/server-x.js":                                     "node",
		"node /x/node_modules/@scope/x.js":                                     "node",
		"node --import /x/node_modules/a/b.js main.js":                         "node",
		"node node_modules/@scope/server-x/index.js":                           "@scope/server-x",
		"node --no-warnings --env-file=.env /x/node_modules/server-x/index.js": "server-x",
		"node --max-old-space-size=512 /x/node_modules/server-x/index.js":      "server-x",
		"node --eval=1 /x/node_modules/server-x/index.js":                      "node",
		"node --test /x/node_modules/server-x/index.js":                        "node",

		// What is not sure to be the package is not taken for it.
		"npx":                            "npx",
		"npx -y":                         "npx",
		"npx --some-flag value server-x": "npx",
		"npx -c server-x":                "npx",
		"npx github:owner/repo":          "npx",
		"npx https://user:token@host.example/x.tgz": "npx",
		"npx ./local":                    "npx",
		"npm start":                      "npm",
		"uvx git+https://host.example/x": "uvx",
		"deno run -A /src/main.ts":       "deno",
		"deno run -A server-x":           "deno",
		"deno run --unknown npm:hunter2": "deno",
		"deno npm:server-x":              "deno",
		"uv run server.py":               "uv",
		"python3 server.py":              "python3",
		"docker compose up":              "docker",
		"docker run -i --rm":             "docker",
	} {
		if got := Of(strings.Fields(command)); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
