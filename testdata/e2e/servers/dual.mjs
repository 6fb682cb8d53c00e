// The fixture server based on the v2 server package. One factory serves both eras:
// a modern client gets an input_required result, and for a legacy client the SDK
// turns the same result into requests.
import { McpServer, ResourceTemplate, completable, createRequestStateCodec, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

import { ran, witnesses } from './witness.mjs';

const text = value => ({ content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }] });
const state = createRequestStateCodec({ key: 'a key of thirty-two bytes or more, for tests', ttlSeconds: 600 });
const heard = [];
const cancelled = [];
let onCancelled = () => {};
const oneCancelled = new Promise(resolve => (onCancelled = resolve));
const subscribed = new Set();

serveStdio(
    () => {
        const server = new McpServer(
            { name: 'attache-dual', title: 'Dual era', version: '1.2.3' },
            {
                capabilities: {
                    logging: {},
                    completions: {},
                    tools: { listChanged: true },
                    prompts: { listChanged: true },
                    resources: { subscribe: true, listChanged: true }
                },
                instructions: 'Use echo. “Quotes” and <tags> are kept.',
                cacheHints: { 'tools/list': { ttlMs: 0, cacheScope: 'private' }, 'resources/list': { ttlMs: 60000, cacheScope: 'public' } },
                requestState: { verify: state.verify }
            }
        );
        tools(server);
        resourcesAndPrompts(server);
        return server;
    },
    { onerror: error => console.error(String(error)) }
);

function tools(server) {
    const schema = shape => z.object(shape);
    server.registerTool(
        'echo',
        { title: 'Echo', description: 'Says it again', inputSchema: schema({ text: z.string() }), annotations: { readOnlyHint: true }, _meta: { 'com.example/ui': { a: 1 } } },
        async ({ text: said }, ctx) => ({ ...text(`echo: ${said}`), _meta: { 'com.example/seen': ctx.mcpReq._meta ?? null } })
    );
    server.registerTool(
        'add',
        { inputSchema: schema({ a: z.number(), b: z.number() }), outputSchema: schema({ sum: z.number() }) },
        async ({ a, b }) => ({ ...text({ sum: a + b }), structuredContent: { sum: a + b } })
    );
    server.registerTool('fail', { inputSchema: schema({}) }, async () => ({ ...text('it did not work'), isError: true }));
    server.registerTool('large', { inputSchema: schema({ bytes: z.number() }) }, async ({ bytes }) => text('x'.repeat(bytes)));
    server.registerTool('measure', { inputSchema: schema({ text: z.string() }) }, async ({ text: said }) => text(`${Buffer.byteLength(said)} bytes`));
    server.registerTool('heard', { inputSchema: schema({}) }, async () => text(heard));
    server.registerTool('cancelled', { inputSchema: schema({}) }, async () => (await oneCancelled, text(cancelled)));

    server.registerTool('progress', { inputSchema: schema({ steps: z.number() }) }, async ({ steps }, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (let i = 1; progressToken !== undefined && i <= steps; i++) {
            await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: i, total: steps, message: `step ${i}` } });
        }
        return text(`${steps} steps`);
    });
    server.registerTool('block', { inputSchema: schema({}) }, async (_, ctx) => {
        await new Promise(resolve => ctx.mcpReq.signal.addEventListener('abort', resolve, { once: true }));
        cancelled.push(String(ctx.mcpReq.signal.reason?.message ?? ctx.mcpReq.signal.reason));
        onCancelled();
        return text('never sent');
    });
    server.registerTool('log', { inputSchema: schema({}) }, async (_, ctx) => {
        for (const level of ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']) {
            await ctx.mcpReq.log(level, { at: level }, 'fixture');
        }
        return text('logged');
    });

    server.registerTool('sample', { inputSchema: schema({ prompt: z.string() }) }, async ({ prompt }, ctx) => {
        const got = inputResponse(ctx.mcpReq.inputResponses, 'line');
        if (got.kind === 'sampling') return text(got.result);
        return inputRequired({
            inputRequests: {
                line: inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 16 })
            }
        });
    });
    const form = { type: 'object', properties: { confirm: { type: 'boolean', title: 'Sure?' }, why: { type: 'string', default: 'because' } }, required: ['confirm'] };
    server.registerTool('elicit', { inputSchema: schema({ question: z.string() }) }, async ({ question }, ctx) => {
        const got = inputResponse(ctx.mcpReq.inputResponses, 'confirm');
        if (got.kind === 'elicit') return text(got);
        return inputRequired({ inputRequests: { confirm: inputRequired.elicit({ message: question, requestedSchema: form }) } });
    });
    server.registerTool('roots', { inputSchema: schema({}) }, async (_, ctx) => {
        const got = inputResponse(ctx.mcpReq.inputResponses, 'roots');
        if (got.kind === 'roots') return text(got.roots);
        return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
    });
    // Three rounds: two requests at once, a third one that depends on them, the result.
    server.registerTool('rounds', { inputSchema: schema({ env: z.string() }) }, async ({ env }, ctx) => {
        const round = ctx.mcpReq.requestState()?.round ?? 0;
        const confirm = question => inputRequired.elicit({ message: question, requestedSchema: form });
        if (round === 0) {
            return inputRequired({
                inputRequests: { roots: inputRequired.listRoots(), 'key with / and ü': confirm(`Deploy to ${env}?`) },
                requestState: await state.mint({ round: 1, env }, ctx)
            });
        }
        if (round === 1) {
            return inputRequired({
                inputRequests: { last: confirm(`Really ${env}? ${Object.keys(ctx.mcpReq.inputResponses ?? {}).sort()}`) },
                requestState: await state.mint({ round: 2, env }, ctx)
            });
        }
        return text({ env, state: ctx.mcpReq.requestState(), last: inputResponse(ctx.mcpReq.inputResponses, 'last') });
    });

    server.registerTool('touch', { inputSchema: schema({ uri: z.string() }) }, async ({ uri }, ctx) => {
        // The SDK filters subscriptions of modern clients; this server filters those of legacy clients.
        if (ctx.mcpReq.envelope !== undefined || subscribed.has(uri)) await server.server.sendResourceUpdated({ uri });
        return text(`touched ${uri}`);
    });
    server.registerTool('grow', { inputSchema: schema({}) }, async () => {
        server.registerTool('grown', { description: 'Was not there before' }, async () => text('grown'));
        return text('grew');
    });

    for (const name of witnesses) {
        server.registerTool(name, { inputSchema: z.looseObject({ tenant: z.any().optional() }) }, async args => ran(name, args));
    }

    server.server.fallbackNotificationHandler = async ({ method, params }) => void heard.push({ method, params });
    server.server.setRequestHandler('resources/subscribe', async ({ params }) => (subscribed.add(params.uri), {}));
    server.server.setRequestHandler('resources/unsubscribe', async ({ params }) => (subscribed.delete(params.uri), {}));
}

function resourcesAndPrompts(server) {
    for (const n of [1, 2]) {
        server.registerResource(`note ${n}`, `fixture://note/${n}`, { mimeType: 'text/plain', annotations: { audience: ['user'], priority: 0 }, size: 6 }, async uri => ({
            contents: [{ uri: uri.href, mimeType: 'text/plain', text: `note ${n}` }]
        }));
    }
    server.registerResource(
        'item',
        new ResourceTemplate('fixture://item/{id}', { list: undefined, complete: { id: value => ['41', '42', '50'].filter(id => id.startsWith(value)) } }),
        { mimeType: 'application/octet-stream' },
        async (uri, { id }) => ({ contents: [{ uri: uri.href, mimeType: 'application/octet-stream', blob: Buffer.from(`item ${id}`).toString('base64') }] })
    );
    server.registerResource('ask', 'fixture://ask', {}, async (uri, ctx) => {
        const got = inputResponse(ctx.mcpReq.inputResponses, 'roots');
        if (got.kind !== 'roots') return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
        return { contents: [{ uri: uri.href, text: JSON.stringify(got.roots) }] };
    });
    const say = said => ({ messages: [{ role: 'user', content: { type: 'text', text: said } }] });
    server.registerPrompt(
        'greet',
        { description: 'Greets', argsSchema: z.object({ name: completable(z.string(), value => ['Ada', 'Alan', 'Grace'].filter(n => n.startsWith(value))) }) },
        async ({ name }) => say(`Hello ${name}`)
    );
    server.registerPrompt('ask-prompt', { description: 'Asks first' }, async ctx => {
        const got = inputResponse(ctx.mcpReq.inputResponses, 'line');
        if (got.kind === 'sampling') return say(JSON.stringify(got.result));
        return inputRequired({
            inputRequests: { line: inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: 'for a prompt' } }], maxTokens: 8 }) }
        });
    });
}
