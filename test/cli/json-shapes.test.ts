/*
 * What scripts read of `--json`: names and types of all that each command prints, as `json-shapes.json` keeps them. After a wanted change:
 * UPDATE_SHAPES=1 npm test -- test/cli/json-shapes.test.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { linesOf, nextJson, startScanwire } from '../support/scanwire.ts';
import { fixture, said, usedDataOf } from '../support/served.ts';

const PAGE = readFileSync('docs/command-line.md', 'utf8');
const KEPT = 'test/cli/json-shapes.json';
const KIND = 'idr_investigation_created';
const BODY = fixture('events/investigation.json');

/** Those that print no document of their own: a protocol; one that needs two servers, which `worker.test.ts` has. */
const NO_DOCUMENT: readonly string[] = ['mcp', 'worker'];

/** Steps of an attempt, which one on an open connection does not make, and what `doctor` advises where something of the machine is wrong. */
const EITHER = new Map([
    ...['dns', 'connect', 'tls', 'firstByte'].map((step) => [step, 'number or null'] as const),
    ['advice', 'string or null'] as const,
]);

type Shape = string | readonly Shape[] | { readonly [key: string]: Shape };

function shapeOf(value: unknown): Shape {
    if (Array.isArray(value)) {
        const shapes = new Map(value.map((item) => [JSON.stringify(shapeOf(item)), shapeOf(item)]));
        return [...shapes.keys()].toSorted().map((text) => shapes.get(text) as Shape);
    }
    if (typeof value === 'object' && value !== null) {
        return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, EITHER.get(key) ?? shapeOf(field)]));
    }
    return value === null ? 'null' : typeof value;
}

/** One document, or a list of those in each line. */
function parsed(text: string): unknown {
    try {
        return JSON.parse(text);
    } catch {
        return text
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line));
    }
}

/** Runs commands, and keeps the shape of what each prints. */
function shapesOf(data: string) {
    const shapes: Record<string, Shape> = {};
    return {
        shapes,

        keep(name: string, value: unknown): void {
            shapes[name] = shapeOf(value);
        },

        /** @param name Of the command and, in brackets, of what is special about the call. */
        async run<Answer = { readonly id: string }>(name: string, ...args: readonly string[]): Promise<Answer> {
            const words = name.replace(/ \(.*\)$/, '').split(' ');
            const { stdout, stderr } = await said([...words, ...args, ...(args.includes('--data') ? [] : ['--data', data]), '--json']);
            if (stdout === '') {
                throw new Error(`${name}: ${stderr}`);
            }
            const answer = parsed(stdout) as Answer;
            shapes[name] = shapeOf(answer);
            return answer;
        },
    };
}

t.test('prints with --json what it has always printed', async (t) => {
    const data = await usedDataOf(t);
    const receiver = await countingReceiver(t, (response) => response.writeHead(status).end());
    let status = 204;
    const { host } = new URL(receiver.url);
    const { shapes, keep, run } = shapesOf(data);
    const server = startScanwire(['serve', '--data', data, '--port', '0', '--json'], { env: { SCANWIRE_EGRESS_ALLOW: host } });
    t.teardown(() => server.kill('SIGKILL'));
    keep('serve', await nextJson(server, linesOf(server)));

    await listening(t, keep);
    await ofTheInventory(run);
    const folder = t.testdir({});
    await ofTheDeployment(run, data, folder);
    await ofRecords(run, folder);
    const { id } = await run('exporters create', '--url', receiver.url, '--start');
    await run('exporters list');
    await run('exporters show', id);
    await run('exporters update', id, '--header', 'X-Own: one');
    await run('exporters test', id);
    await run('exporters explain', id, '--kind', KIND, '--body', BODY);
    await run('exporters preview', id, '--kind', KIND, '--body', BODY);
    await run('exporters pause', id);
    await run('exporters resume', id);
    await run('doctor (exporter)', '--exporter', id);

    status = 400;
    const { eventId, deliveries } = await run<{ eventId: string; deliveries: string[] }>('events publish', KIND, BODY);
    const [delivery = ''] = deliveries;
    const isIn = async (outcome: string) => (await run<{ lastCode: string | null }>('deliveries show', delivery)).lastCode === outcome;
    await until(() => isIn('client_error'));
    await run('events show', eventId);
    await run('deliveries list', '--kind', KIND);
    await run('deliveries list (count)', '--count');
    await run('attempts list', '--delivery', delivery);
    await run('attempts list (count)', '--count');
    await run('deliveries replay (dry run)', '--exporter', id, '--failed-since', '1h', '--dry-run');
    status = 204;
    const many = await run('deliveries replay (many)', '--exporter', id, '--failed-since', '1h');
    await until(async () => (await run<{ state: string }[]>('deliveries replays'))[0]?.state === 'done');
    await run('deliveries replays (one)', many.id);
    await until(() => isIn('delivered'));
    await run('deliveries replay', delivery);
    await until(async () => (await run<{ state: string }>('deliveries show', delivery)).state === 'delivered');
    await run('exporters pause', id);
    const waiting = await run<{ deliveries: string[] }>('events publish', KIND, BODY);
    await run('deliveries discard', waiting.deliveries[0] ?? delivery);
    await run('exporters resume', id);
    await run('exporters stop', id);
    await run('exporters explain (not wanted)', id, '--kind', KIND, '--body', BODY);
    await run('exporters start', id);
    await run('events erase', eventId);
    await run('exporters remove', id);

    const sections = PAGE.split(/^### scanwire /m).slice(1);
    const commands = sections.filter((section) => section.includes('--json')).map((section) => section.slice(0, section.indexOf('\n')));
    t.ok(commands.length > 45, `${commands.length} commands`);
    const shown = new Set([...Object.keys(shapes).map((name) => name.replace(/ \(.*\)$/, '')), ...NO_DOCUMENT]);
    t.strictSame(
        commands.filter((name) => !shown.has(name)),
        [],
        'every command that has --json is run',
    );
    if (process.env.UPDATE_SHAPES === '1') {
        writeFileSync(KEPT, `${JSON.stringify(shapes, null, 4)}\n`);
    }
    const kept = JSON.parse(readFileSync(KEPT, 'utf8')) as typeof shapes;
    t.strictSame(Object.keys(shapes).toSorted(), Object.keys(kept).toSorted());
    for (const [name, shape] of Object.entries(shapes)) {
        t.strictSame(shape, kept[name], name);
    }
});

type RunCommand = ReturnType<typeof shapesOf>['run'];

/** What a receiver prints: that it listens, then each message. */
async function listening(t: Test, keep: (name: string, value: unknown) => void): Promise<void> {
    const listener = startScanwire(['listen', '--port', '0', '--secret-env', 'OWN', '--json'], { env: { OWN: 'a secret of ours' } });
    t.teardown(() => listener.kill('SIGKILL'));
    const lines = linesOf(listener);
    const begun = await nextJson(listener, lines);
    keep('listen', begun);
    await fetch(String(begun.listening), { method: 'POST', body: '{}' });
    keep('listen (message)', await nextJson(listener, lines));
}

async function ofTheInventory(run: RunCommand): Promise<void> {
    await run('import', fixture('scans/services.xml'), '--workspace', 'lab');
    const { hosts } = await run<{ hosts: { id: number; address: string }[] }>('hosts list', '--workspace', 'lab');
    await run('hosts show', hosts[0]?.address ?? '', '--workspace', 'lab');
    await run('hosts move', String(hosts[0]?.id), '--to', 'default');
    await run('hosts remove', hosts[1]?.address ?? '', '--workspace', 'lab');
    await run('hosts expire', '--workspace', 'lab', '--not-seen', '1d');
    await run('workspaces list');
    await run('workspaces show', 'lab');
    await run('workspaces update', 'lab', '--boundary', '192.0.2.0/24');
    await run('workspaces rename', 'lab', 'attic');
    await run('workspaces remove', 'attic');
}

async function ofTheDeployment(run: RunCommand, data: string, folder: string): Promise<void> {
    const { id } = await run('keys create', 'ci', '--workspace', '1', '--expires', '90d');
    await run('keys list');
    await run('keys reveal', id);
    await run('keys revoke', id);
    await run('audit list');
    await run('migrate');
    await run('keyring rotate');
    await run('doctor');
    await run('console');
    await run('export', '--output', join(folder, 'hosts.jsonl'));
    await run('backup', join(folder, 'backup'));
    await run('restore', join(folder, 'backup'), '--data', join(folder, 'restored'));
    await run('license show');
    await run('license install', join(data, 'license', 'license.jws'));
    await run('license trust', join(data, 'license', 'public-key.pem'));
}

async function ofRecords(run: RunCommand, folder: string): Promise<void> {
    const records = fixture('records/https.jsonl');
    await run('records schema');
    await run('records check', records);
    await run('records read', records);
    await run('records write', records, '--output', join(folder, 'written.jsonl'));
    await run('records mend', fixture('records/old-style.jsonl'), '--output', join(folder, 'mended.jsonl'));
    // Nobody is there: that is in the report.
    await run('records capture', '127.0.0.1:1', '--output', join(folder, 'captured.jsonl'));
}
