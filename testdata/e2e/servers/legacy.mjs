// The fixture server based on the v1 SDK's low-level Server. It pages its lists, runs
// tools as tasks of revision 2025-11-25, and sends requests to the client.
import { InMemoryTaskMessageQueue, InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

import { ran, witnesses } from './witness.mjs';

const PAGE = 4;
const text = value => ({ content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }] });
const object = (properties = {}, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const string = { type: 'string' };
const number = { type: 'number' };
const heard = [];
const cancelled = [];
let onCancelled = () => {};
const oneCancelled = new Promise(resolve => (onCancelled = resolve));
const subscribed = new Set();
const jobs = new Map();

const server = new Server(
    { name: 'attache-legacy', version: '0.1.0', websiteUrl: 'https://example.invalid' },
    {
        capabilities: {
            logging: {},
            completions: {},
            prompts: { listChanged: true },
            resources: { subscribe: true, listChanged: true },
            tools: { listChanged: true },
            tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
            experimental: { 'com.example/extra': { on: true } }
        },
        taskStore: new InMemoryTaskStore(),
        taskMessageQueue: new InMemoryTaskMessageQueue()
    }
);

const form = object({ confirm: { type: 'boolean', title: 'Sure?' }, why: { type: 'string', default: 'because' } }, ['confirm']);
const sample = (prompt, extra) =>
    extra.sendRequest(
        { method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 16 } },
        types.CreateMessageResultSchema
    );
const elicit = (message, extra) =>
    extra.sendRequest({ method: 'elicitation/create', params: { mode: 'form', message, requestedSchema: form } }, types.ElicitResultSchema);
const roots = extra => extra.sendRequest({ method: 'roots/list' }, types.ListRootsResultSchema);

// The tools: each has its entry for tools/list and its handler.
const tools = {
    echo: [
        { title: 'Echo', description: 'Says it again', inputSchema: object({ text: string }), annotations: { readOnlyHint: true }, _meta: { 'com.example/ui': { a: 1 } } },
        ({ text: said }, extra) => ({ ...text(`echo: ${said}`), _meta: { 'com.example/seen': extra._meta ?? null } })
    ],
    add: [
        { inputSchema: object({ a: number, b: number }), outputSchema: object({ sum: number }) },
        ({ a, b }) => {
            if (typeof a !== 'number' || typeof b !== 'number') throw new types.McpError(-32602, 'a and b are numbers', { a: typeof a, b: typeof b });
            return { ...text({ sum: a + b }), structuredContent: { sum: a + b } };
        }
    ],
    fail: [{ inputSchema: object() }, () => ({ ...text('it did not work'), isError: true })],
    large: [{ inputSchema: object({ bytes: number }) }, ({ bytes }) => text('x'.repeat(bytes))],
    measure: [{ inputSchema: object({ text: string }) }, ({ text: said }) => text(`${Buffer.byteLength(said)} bytes`)],
    heard: [{ inputSchema: object() }, () => text(heard)],
    cancelled: [{ inputSchema: object() }, async () => (await oneCancelled, text(cancelled))],
    progress: [
        { inputSchema: object({ steps: number }) },
        async ({ steps }, extra) => {
            const progressToken = extra._meta?.progressToken;
            for (let i = 1; progressToken !== undefined && i <= steps; i++) {
                await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress: i, total: steps, message: `step ${i}` } });
            }
            return text(`${steps} steps`);
        }
    ],
    block: [
        { inputSchema: object() },
        async (_, extra) => {
            await new Promise(resolve => extra.signal.addEventListener('abort', resolve, { once: true }));
            cancelled.push(String(extra.signal.reason?.message ?? extra.signal.reason));
            onCancelled();
            return text('never sent');
        }
    ],
    log: [
        { inputSchema: object() },
        async () => {
            for (const level of types.LoggingLevelSchema.options) await server.sendLoggingMessage({ level, logger: 'fixture', data: { at: level } });
            return text('logged');
        }
    ],
    sample: [{ inputSchema: object({ prompt: string }) }, async ({ prompt }, extra) => text(await sample(prompt, extra))],
    elicit: [{ inputSchema: object({ question: string }) }, async ({ question }, extra) => text(await elicit(question, extra))],
    roots: [{ inputSchema: object() }, async (_, extra) => text(await roots(extra))],
    rounds: [
        { inputSchema: object({ env: string }) },
        async ({ env }, extra) => {
            const [first, second] = await Promise.all([roots(extra), elicit(`Deploy to ${env}?`, extra)]);
            await server.ping();
            return text({ env, first, second, last: await elicit(`Really ${env}?`, extra) });
        }
    ],
    touch: [
        { inputSchema: object({ uri: string }) },
        async ({ uri }) => {
            if (subscribed.has(uri)) await server.sendResourceUpdated({ uri });
            return text(`touched ${uri}`);
        }
    ],
    grow: [
        { inputSchema: object() },
        async () => {
            tools.grown = [{ description: 'Was not there before', inputSchema: object() }, () => text('grown')];
            await server.sendToolListChanged();
            return text('grew');
        }
    ],
    exit: [{ inputSchema: object({ status: number }) }, ({ status }) => (console.error('fixture: last words'), process.exit(status))],
    job: [
        { inputSchema: object({ text: string }), execution: { taskSupport: 'optional' } },
        async ({ text: said }, extra, asTask) => {
            if (asTask === undefined) return text(`job at once: ${said}`);
            const task = await extra.taskStore.createTask({ ttl: asTask.ttl, pollInterval: 50 });
            jobs.set(task.taskId, () => extra.taskStore.storeTaskResult(task.taskId, 'completed', text(`job done: ${said}`)));
            return { task };
        }
    ],
    release: [{ inputSchema: object({ taskId: string }) }, async ({ taskId }) => (await jobs.get(taskId)?.(), text('released'))]
};
for (const name of witnesses) tools[name] = [{ inputSchema: object({ tenant: string }, []) }, args => ran(name, args)];

server.setRequestHandler(types.ListToolsRequestSchema, ({ params }) => {
    const at = Number(params?.cursor ?? 0);
    const all = Object.entries(tools).map(([name, [definition]]) => ({ name, ...definition }));
    return { tools: all.slice(at, at + PAGE), ...(at + PAGE < all.length && { nextCursor: String(at + PAGE) }) };
});
server.setRequestHandler(types.CallToolRequestSchema, async ({ params }, extra) => {
    const tool = tools[params.name];
    if (tool === undefined) throw new types.McpError(-32602, `no tool ${params.name}`);
    return tool[1](params.arguments ?? {}, extra, params.task);
});

server.setRequestHandler(types.ListResourcesRequestSchema, ({ params }) =>
    params?.cursor === 'more'
        ? { resources: [{ uri: 'fixture://note/2', name: 'note 2' }] }
        : { resources: [{ uri: 'fixture://note/1', name: 'note 1', mimeType: 'text/plain', size: 6, annotations: { priority: 0 } }], nextCursor: 'more' }
);
server.setRequestHandler(types.ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [{ uriTemplate: 'fixture://item/{id}', name: 'item' }] }));
server.setRequestHandler(types.ReadResourceRequestSchema, async ({ params: { uri } }, extra) => {
    const [, kind, id] = /^fixture:\/\/(note|item|ask)(?:\/(\d+))?$/.exec(uri) ?? [];
    if (kind === 'note') return { contents: [{ uri, mimeType: 'text/plain', text: `note ${id}` }] };
    if (kind === 'item') return { contents: [{ uri, mimeType: 'application/octet-stream', blob: Buffer.from(`item ${id}`).toString('base64') }] };
    if (kind === 'ask') return { contents: [{ uri, text: JSON.stringify(await roots(extra)) }] };
    throw new types.McpError(-32002, 'Resource not found', { uri });
});
server.setRequestHandler(types.SubscribeRequestSchema, ({ params }) => (subscribed.add(params.uri), {}));
server.setRequestHandler(types.UnsubscribeRequestSchema, ({ params }) => (subscribed.delete(params.uri), {}));

server.setRequestHandler(types.ListPromptsRequestSchema, () => ({
    prompts: [{ name: 'greet', description: 'Greets', arguments: [{ name: 'name', required: true }] }, { name: 'ask-prompt' }]
}));
server.setRequestHandler(types.GetPromptRequestSchema, async ({ params }, extra) => {
    const say = said => ({ messages: [{ role: 'user', content: { type: 'text', text: said } }] });
    if (params.name === 'greet') return say(`Hello ${params.arguments?.name}`);
    if (params.name === 'ask-prompt') return say(JSON.stringify(await sample('for a prompt', extra)));
    throw new types.McpError(-32602, `no prompt ${params.name}`);
});
server.setRequestHandler(types.CompleteRequestSchema, ({ params: { ref, argument } }) => {
    const values = ref.type === 'ref/prompt' ? ['Ada', 'Alan', 'Grace'] : ['41', '42', '50'];
    return { completion: { values: values.filter(v => v.startsWith(argument.value)), hasMore: false } };
});
server.fallbackNotificationHandler = async ({ method, params }) => void heard.push({ method, params });
server.onerror = error => console.error(String(error));

await server.connect(new StdioServerTransport());
