/*
 * Slack is set up by the commands of docs/formats.md and nothing else, and gets the investigation of docs/webhook-exporter.md. Slack itself cannot run here: a
 * stand-in takes what Slack's documentation says of a message, and answers as it does, `ok` or `invalid_payload`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { scanwire } from '../support/scanwire.ts';
import { serveIn, usedDataOf } from '../support/served.ts';
import { brokenRules, SLACK_RULES } from '../support/vendor-rules.ts';

const [, SLACK = ''] = /^\*\*Slack\.\*\*(.*?)^\*\*Teams\.\*\*/ms.exec(readFileSync('docs/formats.md', 'utf8')) ?? [];
const [, INVESTIGATION = ''] = /`investigation\.json`:\n\n```json\n(.*?)```/s.exec(readFileSync('docs/webhook-exporter.md', 'utf8')) ?? [];

interface Posted {
    readonly path: string | undefined;
    readonly broken: readonly string[];
    readonly text: string;
}

async function channel(t: Test): Promise<{ readonly origin: string; readonly posted: readonly Posted[] }> {
    const posted: Posted[] = [];
    const server = createServer(async (request, response) => {
        const body = await text(request);
        const message = body.startsWith('{') ? JSON.parse(body) : null;
        const isJson = request.headers['content-type']?.startsWith('application/json') === true;
        const broken = isJson ? brokenRules(SLACK_RULES, message) : ['no JSON'];
        posted.push({ path: request.url, broken, text: message?.text });
        response.writeHead(broken.length === 0 ? 200 : 400).end(broken.length === 0 ? 'ok' : 'invalid_payload');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, posted };
}

t.test('a channel of Slack gets a test and an investigation by the commands of the page', async (t) => {
    const { origin, posted } = await channel(t);
    const data = await usedDataOf(t);
    await serveIn(t, { SCANWIRE_EGRESS_ALLOW: '127.0.0.1' }, data);
    const files = new Map([
        ['slack-url', join(dirname(data), 'slack-url')],
        ['investigation.json', join(dirname(data), 'investigation.json')],
    ]);
    writeFileSync(files.get('slack-url') as string, `${origin}/services/T0/B0/XX\n`);
    writeFileSync(files.get('investigation.json') as string, INVESTIGATION);
    const [create = '', publish = ''] = Array.from(SLACK.matchAll(/^ {4}scanwire (.*)$/gm), ([, command = '']) => command);
    const typed = (command: string) => scanwire([...command.split(' ').map((word) => files.get(word) ?? word), '--data', data]);
    const created = await typed(create);
    t.match(created, { code: 0, stdout: /^Test +delivered: 200 /m }, created.stderr);
    const published = await typed(publish);
    t.match(published, { code: 0 }, published.stderr);
    await until(() => posted.length === 2);
    const { title } = JSON.parse(INVESTIGATION) as { readonly title: string };
    t.strictSame(posted, [
        { path: '/services/T0/B0/XX', broken: [], text: 'Test of Alerts' },
        { path: '/services/T0/B0/XX', broken: [], text: title },
    ]);

    const other = await scanwire(['exporters', 'create', '--url', `${origin}/services/T0/B0/XX`, '--start', '--data', data]);
    t.match(other.stdout, /^Test +failed: .*400/m, 'the stand-in refuses what Slack does');
});
