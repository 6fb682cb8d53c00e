// Goserver is the fixture server based on the go-sdk. It supports both eras: a modern client gets
// an input_required result, and for a legacy client the SDK turns the same result into requests.
// Its tools have the same names as those of servers/dual.mjs, so the same scenarios run with both.
//
//lint:file-ignore SA1019 roots, sampling and logging are deprecated, and still what servers and clients send
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	f := &fixture{oneCancelled: make(chan struct{})}
	f.server = mcp.NewServer(
		&mcp.Implementation{Name: "attache-go", Title: "Go fixture", Version: "1.0.0"},
		&mcp.ServerOptions{
			Instructions:       "Use echo.",
			PageSize:           6,
			CompletionHandler:  complete,
			SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
			UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		})
	f.addTools()
	f.addToolsThatAsk()
	f.addContent()
	if file := os.Getenv("E2E_RAN"); file != "" {
		f.addWitnesses(file)
	}
	if err := f.run(); err != nil {
		log.Fatal(err)
	}
}

// run serves on stdio, or with -http on a port of the loopback interface, whose address it
// prints.
func (f *fixture) run() error {
	overHTTP := flag.Bool("http", false, "serve Streamable HTTP")
	stateless := flag.Bool("stateless", false, "without sessions, which the modern era needs")
	flag.Parse()
	if !*overHTTP {
		return f.server.Run(context.Background(), &mcp.StdioTransport{})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	return http.Serve(listener, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return f.server }, &mcp.StreamableHTTPOptions{Stateless: *stateless}))
}

type fixture struct {
	server *mcp.Server

	cancelled    string        // why block ended; written before oneCancelled closes
	oneCancelled chan struct{} // closed when block is cancelled
	once         sync.Once
}

type none struct{}

// text returns a result with one text block. The tools that use it declare no output schema, so
// the SDK adds no structuredContent.
func text(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func inJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (f *fixture) addTools() {
	type echo struct {
		Text string `json:"text"`
	}
	mcp.AddTool(f.server, &mcp.Tool{Name: "echo", Title: "Echo", Description: "Says it again", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in echo) (*mcp.CallToolResult, any, error) {
			return text("echo: %s", in.Text), nil, nil
		})
	type sum struct {
		Sum float64 `json:"sum"`
	}
	mcp.AddTool(f.server, &mcp.Tool{Name: "add"},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			A float64 `json:"a"`
			B float64 `json:"b"`
		}) (*mcp.CallToolResult, sum, error) {
			return nil, sum{in.A + in.B}, nil
		})
	mcp.AddTool(f.server, &mcp.Tool{Name: "fail"},
		func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
			return nil, nil, errors.New("it did not work")
		})
	mcp.AddTool(f.server, &mcp.Tool{Name: "large"},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			Bytes int `json:"bytes"`
		}) (*mcp.CallToolResult, any, error) {
			return text("%s", strings.Repeat("x", in.Bytes)), nil, nil
		})
	mcp.AddTool(f.server, &mcp.Tool{Name: "measure"},
		func(_ context.Context, _ *mcp.CallToolRequest, in echo) (*mcp.CallToolResult, any, error) {
			return text("%d bytes", len(in.Text)), nil, nil
		})
	mcp.AddTool(f.server, &mcp.Tool{Name: "progress"}, f.progress)
	mcp.AddTool(f.server, &mcp.Tool{Name: "block"}, f.block)
	mcp.AddTool(f.server, &mcp.Tool{Name: "cancelled"},
		func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
			<-f.oneCancelled
			return text("%s", f.cancelled), nil, nil
		})
	mcp.AddTool(f.server, &mcp.Tool{Name: "log"},
		func(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
			for _, level := range []mcp.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"} {
				if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "fixture", Data: map[string]any{"at": level}}); err != nil {
					return nil, nil, err
				}
			}
			return text("logged"), nil, nil
		})
	mcp.AddTool(f.server, &mcp.Tool{Name: "touch"},
		func(ctx context.Context, _ *mcp.CallToolRequest, in struct {
			URI string `json:"uri"`
		}) (*mcp.CallToolResult, any, error) {
			return text("touched %s", in.URI), nil, f.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: in.URI})
		})
	mcp.AddTool(f.server, &mcp.Tool{Name: "grow"},
		func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
			mcp.AddTool(f.server, &mcp.Tool{Name: "grown"},
				func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
					return text("grown"), nil, nil
				})
			return text("grew"), nil, nil
		})
}

func (f *fixture) progress(ctx context.Context, req *mcp.CallToolRequest, in struct {
	Steps int `json:"steps"`
}) (*mcp.CallToolResult, any, error) {
	token := req.Params.GetProgressToken()
	for i := 1; token != nil && i <= in.Steps; i++ {
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(i), Total: float64(in.Steps), Message: fmt.Sprintf("step %d", i),
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return text("%d steps", in.Steps), nil, nil
}

func (f *fixture) block(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
	<-ctx.Done()
	f.once.Do(func() {
		f.cancelled = ctx.Err().Error()
		close(f.oneCancelled)
	})
	return nil, nil, ctx.Err()
}

// confirm returns the form that the tools send in elicitations.
func confirm(question string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: question, RequestedSchema: json.RawMessage(
		`{"type":"object","properties":{"confirm":{"type":"boolean","title":"Sure?"},"why":{"type":"string","default":"because"}},"required":["confirm"]}`)}
}

func sample(prompt string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		MaxTokens: 16,
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: prompt}}},
	}
}

func (f *fixture) addToolsThatAsk() {
	// asks returns the elicitation, or the client's response if there is one.
	asks := func(req *mcp.CallToolRequest, question mcp.InputRequest) (*mcp.CallToolResult, any, error) {
		if got, ok := req.Params.InputResponses["it"]; ok {
			return text("%s", inJSON(got)), nil, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"it": question}}, nil, nil
	}
	mcp.AddTool(f.server, &mcp.Tool{Name: "sample"},
		func(_ context.Context, req *mcp.CallToolRequest, in struct {
			Prompt string `json:"prompt"`
		}) (*mcp.CallToolResult, any, error) {
			return asks(req, sample(in.Prompt))
		})
	mcp.AddTool(f.server, &mcp.Tool{Name: "elicit"},
		func(_ context.Context, req *mcp.CallToolRequest, in struct {
			Question string `json:"question"`
		}) (*mcp.CallToolResult, any, error) {
			return asks(req, confirm(in.Question))
		})
	mcp.AddTool(f.server, &mcp.Tool{Name: "roots"},
		func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
			return asks(req, &mcp.ListRootsParams{})
		})
	// Every client gets two rounds. The SDK makes only one round for legacy clients, so the
	// state distinguishes them.
	mcp.AddTool(f.server, &mcp.Tool{Name: "rounds"},
		func(_ context.Context, req *mcp.CallToolRequest, in struct {
			Env string `json:"env"`
		}) (*mcp.CallToolResult, any, error) {
			if req.Params.RequestState == "" {
				return &mcp.CallToolResult{
					InputRequests: mcp.InputRequestMap{"key with / and ü": confirm("Deploy to " + in.Env + "?")},
					RequestState:  "opaque:" + in.Env + `:"<&>`,
				}, nil, nil
			}
			return text("%s after %s", inJSON(req.Params.InputResponses), req.Params.RequestState), nil, nil
		})
}

func (f *fixture) addContent() {
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri := req.Params.URI
		if id, ok := strings.CutPrefix(uri, "fixture://item/"); ok {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "application/octet-stream", Blob: []byte("item " + id)}}}, nil
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: "note"}}}, nil
	}
	for _, n := range []string{"1", "2"} {
		f.server.AddResource(&mcp.Resource{Name: "note " + n, URI: "fixture://note/" + n, MIMEType: "text/plain", Size: 4}, read)
	}
	f.server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "item", URITemplate: "fixture://item/{id}"}, read)
	f.server.AddResource(&mcp.Resource{Name: "ask", URI: "fixture://ask"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			if got, ok := req.Params.InputResponses["roots"]; ok {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: inJSON(got)}}}, nil
			}
			return &mcp.ReadResourceResult{InputRequests: mcp.InputRequestMap{"roots": &mcp.ListRootsParams{}}}, nil
		})

	say := func(text string) *mcp.GetPromptResult {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}
	}
	f.server.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Greets", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return say("Hello " + req.Params.Arguments["name"]), nil
		})
	f.server.AddPrompt(&mcp.Prompt{Name: "ask-prompt"},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if got, ok := req.Params.InputResponses["line"]; ok {
				return say(inJSON(got)), nil
			}
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"line": sample("for a prompt")}}, nil
		})
}

func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	all := []string{"Ada", "Alan", "Grace", "41", "42", "50"}
	res := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	for _, v := range all {
		if strings.HasPrefix(v, req.Params.Argument.Value) {
			res.Completion.Values = append(res.Completion.Values, v)
		}
	}
	return res, nil
}
