// What the two tools of the test of hostile frames do: write to a file what they
// were asked to run, a line of JSON a call.
import { appendFileSync } from 'node:fs';

export const witnesses = process.env.E2E_RAN ? ['drop', 'keep'] : [];

export function ran(tool, args) {
    appendFileSync(process.env.E2E_RAN, JSON.stringify({ tool, tenant: args?.tenant ?? null }) + '\n');
    return { content: [{ type: 'text', text: 'ran' }] };
}
