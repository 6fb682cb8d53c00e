// Driver for v1 of the TypeScript SDK, which supports only the legacy era.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CallToolResultSchema,
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    ResultSchema
} from '@modelcontextprotocol/sdk/types.js';
import { main } from './lib/main.mjs';

const REQUESTS = {
    'sampling/createMessage': CreateMessageRequestSchema,
    'elicitation/create': ElicitRequestSchema,
    'roots/list': ListRootsRequestSchema
};
const LISTS = {
    tools: 'listTools',
    prompts: 'listPrompts',
    resources: 'listResources',
    resourceTemplates: 'listResourceTemplates'
};

const sdk = {
    name: 'v1',
    client: capabilities => new Client({ name: 'attache-e2e', version: '1.0.0' }, { capabilities }),
    transport: parameters => new StdioClientTransport(parameters),
    http: url => new StreamableHTTPClientTransport(url),
    era: () => 'legacy',
    answer: (client, method, handler) => client.setRequestHandler(REQUESTS[method], handler),
    call: (client, params, options) => client.callTool(params, undefined, options),
    request: (client, method, params) => client.request({ method, params }, ResultSchema),
    async list(client, kind) {
        const pages = [];
        let cursor;
        do {
            const page = await client[LISTS[kind]](cursor === undefined ? undefined : { cursor });
            pages.push(page);
            cursor = page.nextCursor;
        } while (cursor !== undefined);
        return pages;
    },
    /** Makes a call as a task of revision 2025-11-25, and reports each event. */
    async task(client, params, onEvent) {
        for await (const event of client.experimental.tasks.callToolStream(params, CallToolResultSchema, { task: { ttl: 60000 } })) {
            await onEvent(event);
        }
    },
    tasks: client => client.experimental.tasks
};

await main(sdk, process.argv.slice(2));
