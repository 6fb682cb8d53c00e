// Driver for v2 of the TypeScript SDK: --mode legacy (initialize only), auto (probes
// with server/discover in a separate process, then falls back) or pin (2026-07-28 only).
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { z } from 'zod';
import { main } from './lib/main.mjs';

const MODES = { legacy: 'legacy', auto: 'auto', pin: { pin: '2026-07-28' } };
const LISTS = {
    tools: 'listTools',
    prompts: 'listPrompts',
    resources: 'listResources',
    resourceTemplates: 'listResourceTemplates'
};

const argv = process.argv.slice(2);
let mode = 'legacy';
if (argv[0] === '--mode') [, mode] = argv.splice(0, 2);
if (!(mode in MODES)) throw new Error(`--mode is one of ${Object.keys(MODES).join(', ')}`);

const sdk = {
    name: 'v2',
    client: capabilities =>
        new Client({ name: 'attache-e2e', version: '1.0.0' }, { capabilities, versionNegotiation: { mode: MODES[mode] } }),
    transport: parameters => new StdioClientTransport(parameters),
    http: url => new StreamableHTTPClientTransport(url),
    era: client => client.getProtocolEra() ?? 'unknown',
    answer: (client, method, handler) => client.setRequestHandler(method, handler),
    call: (client, params, options) => client.callTool(params, options),
    // The SDK requires a schema for methods that it does not know, and refuses one for others.
    request: (client, method, params) => client.request({ method, params }, ...(method.startsWith('acme/') ? [z.looseObject({})] : [])),
    list: (client, kind) => client[LISTS[kind]]()
};

await main(sdk, argv);
