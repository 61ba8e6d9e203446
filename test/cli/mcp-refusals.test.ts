import { Readable } from 'node:stream';
import t from 'tap';
import { relay, spoken } from '../../cli/commands/mcp.ts';
import { dataFolder } from '../../cli/data-folder.ts';
import { serve, usedDataOf } from '../support/served.ts';

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };

t.test('every line of mcp is JSON-RPC, also of what the server refuses before it knows the protocol', async (t) => {
    const data = await usedDataOf(t);
    await serve(t, data);
    const lines: string[] = [];
    const long = 'x'.repeat(70_000);
    const asked = [
        'no JSON',
        JSON.stringify({ ...PING, id: 'long', params: { long } }),
        JSON.stringify([
            { ...PING, params: { long } },
            { jsonrpc: '2.0', method: 'notifications/initialized' },
            { ...PING, id: 2 },
        ]),
        JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { long } }),
        '"text"',
        JSON.stringify(PING),
    ];
    await relay(dataFolder(data), Readable.from(asked.map((line) => `${line}\n`)), (line) => lines.push(line));
    const [unparsed, single, batch, text, ping] = lines.map((line) => JSON.parse(line));
    t.match(unparsed, { jsonrpc: '2.0', id: null, error: { code: -32_700, message: String } });
    t.match(single, { jsonrpc: '2.0', id: 'long', error: { code: -32_600, message: /65536/ } });
    t.match(batch, [
        { jsonrpc: '2.0', id: 1, error: { code: -32_600 } },
        { jsonrpc: '2.0', id: 2, error: { code: -32_600 } },
    ]);
    t.equal(batch.length, 2, 'what is told gets no answer');
    t.match(text, { jsonrpc: '2.0', id: null, error: { code: Number } });
    t.match(ping, { id: 1, result: {} });
    t.equal(lines.length, 5);
});

t.test('a refusal of a route is told by its message, and a failure is one of the server', (t) => {
    const message = JSON.stringify(PING);
    const said = (status: number, answer: string) => JSON.parse(spoken(message, status, answer)).error;
    t.same(said(403, '{"error":{"code":"UNLICENSED","message":"No licence"}}'), { code: -32_600, message: 'No licence' });
    t.same(said(503, '{"message":"Later"}'), { code: -32_603, message: 'Later' });
    t.same(said(500, '<html>'), { code: -32_603, message: 'The server answered 500' });
    t.same(said(502, ''), { code: -32_603, message: 'The server answered 502' });
    t.equal(spoken(message, 202, ''), '');
    t.end();
});
