// The two tools for the test of hostile frames. They write each call to a file as a
// line of JSON.
import { appendFileSync } from 'node:fs';

export const witnesses = process.env.E2E_RAN ? ['drop', 'keep'] : [];

export function ran(tool, args) {
    appendFileSync(process.env.E2E_RAN, JSON.stringify({ tool, tenant: args?.tenant ?? null }) + '\n');
    return { content: [{ type: 'text', text: 'ran' }] };
}
