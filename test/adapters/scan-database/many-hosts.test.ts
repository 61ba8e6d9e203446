import { fork } from 'node:child_process';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import t from 'tap';
import { scanDatabase } from './scan-database.ts';

const HOSTS = 200_000;
/** What the server may take beyond what it took before, in MiB. */
const MOST_MEMORY = 100;

/**
 * The hosts of a network in the workspace `default`, from id 1001 on: every third of version 6, each column that may be null null in some
 * and none in others, link-local addresses with a zone; and notes with the texts that the framework serialises.
 */
const FILL = `
    insert into hosts (id, workspace_id, address, scope, state, name, mac, os_name, os_flavor, os_sp, os_lang, arch, detected_arch, purpose, info,
        comments, comm, virtual_host, note_count, service_count, vuln_count, host_detail_count, exploit_attempt_count, cred_count, created_at, updated_at)
    select 1000 + n, 1,
        case when n % 3 = 0 then ('fe80::'::inet + n) else '10.0.0.0'::inet + n end,
        case when n % 6 = 0 then 'eth' || n % 4 end,
        case n % 5 when 0 then null when 1 then 'alive' when 2 then 'down' when 3 then 'unknown' else 'odd' end,
        case n % 4 when 0 then null when 1 then '' else 'host-' || n || '.example' end,
        case when n % 2 = 0 then '00:50:56:' || lpad(to_hex(n), 6, '0') end,
        case n % 3 when 1 then 'Linux' when 2 then 'Windows 10' end, case when n % 7 = 0 then 'Debian "12"' end, case when n % 11 = 0 then 'SP1' end,
        case when n % 13 = 0 then 'de' end, case n % 4 when 0 then 'x64' when 1 then 'riscv64' when 2 then '' end, case when n % 31 = 0 then 'sh4' end,
        case when n % 2 = 1 then 'server' end, case when n % 17 = 0 then E'line\\nbreak \\\\ köln 💾' end, case when n % 19 = 0 then 'seen' end,
        case when n % 23 = 0 then '' end, case when n % 29 = 0 then 'VMWare' end,
        nullif(n % 3, 0), nullif(n % 2, 0), case when n % 2 = 0 then 0 end,
        nullif(n % 37 / 36, 0), case when n % 2 = 0 then n % 41 / 40 end, n % 43 / 42,
        case when n % 10 > 0 then '2024-02-29 12:00:00.999'::timestamp + n * interval '1 second' end,
        case when n % 9 > 0 then '2025-01-01'::timestamp + n * interval '1 second' end
    from generate_series(1, ${HOSTS}) n;
    insert into notes (id, host_id, workspace_id, ntype, data)
    select 1000 + n, 1000 + n, 1, 'host.os', case n % 3 when 0 then 'BAh7BjoKb3V0cHV0SSIHb2sGOgZFVA==' when 1 then '{"port":' || n || '}' end
    from generate_series(1, ${HOSTS}, 20) n;
    analyze`;

type Row = Readonly<Record<string, unknown>>;

/** Some of the fields of the host that is the `n`th of these. */
function expected(n: number): Row {
    const address = n % 3 === 0 ? linkLocal(n) : `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
    const changed = new Date(Date.UTC(2025, 0, 1) + n * 1000);
    const created = new Date(Date.UTC(2024, 1, 29, 12) + n * 1000);
    const created_at = n % 10 > 0 ? utc(created) : n % 9 > 0 ? utc(changed) : '2020-01-02T03:04:05+00:00';
    return {
        id: 1000 + n,
        workspace_id: 1,
        created_at,
        updated_at: n % 9 > 0 ? utc(changed) : n % 10 > 0 ? utc(created) : '2021-01-02T03:04:05+00:00',
        address,
        mac: n % 2 === 0 ? `00:50:56:${n.toString(16).padStart(6, '0')}` : '',
        comm: n % 23 === 0 ? '' : null,
        name: n % 4 < 2 ? address : `host-${n}.example`,
        state: ['alive', 'alive', 'down', 'unknown', 'unknown'][n % 5],
        os_name: ['', 'Linux', 'Windows 10'][n % 3],
        os_flavor: n % 7 === 0 ? 'Debian "12"' : '',
        os_sp: n % 11 === 0 ? 'SP1' : '',
        os_lang: n % 13 === 0 ? 'de' : null,
        arch: ['x64', 'Unknown', '', null][n % 4],
        purpose: n % 2 === 1 ? 'server' : '',
        info: n % 17 === 0 ? 'line\nbreak \\ köln 💾' : null,
        comments: n % 19 === 0 ? 'seen' : null,
        scope: n % 6 === 0 ? `eth${n % 4}` : null,
        virtual_host: n % 29 === 0 ? 'VMWare' : null,
        note_count: n % 3,
        vuln_count: 0,
        service_count: n % 2,
        host_detail_count: n % 37 === 36 ? 1 : 0,
        exploit_attempt_count: n % 2 === 0 && n % 41 === 40 ? 1 : 0,
        cred_count: n % 43 === 42 ? 1 : 0,
        nexpose_data_asset_id: null,
        history_count: 0,
        detected_arch: n % 31 === 0 ? 'sh4' : n % 4 === 1 ? 'riscv64' : null,
    };
}

function linkLocal(n: number): string {
    const [high, low] = [n >> 16, n & 65_535];
    return `fe80::${high === 0 ? '' : `${high.toString(16)}:`}${low.toString(16)}`;
}

function utc(time: Date): string {
    return `${time.toISOString().slice(0, 19)}+00:00`;
}

/** A server in a process of its own, which has less memory than the answer has text, and what it takes of it now. */
async function serving(url: string) {
    const child = fork(new URL('./serving-child.js', import.meta.url), [url], {
        execArgv: ['--max-old-space-size=48', '--max-semi-space-size=4'],
    });
    const [uri] = (await once(child, 'message')) as [string];
    const memory = async (): Promise<number> => {
        child.send('memory');
        const [rss] = (await once(child, 'message')) as [number];
        return rss;
    };
    const end = async (): Promise<void> => {
        child.disconnect();
        await once(child, 'exit');
    };
    return { base: `${uri}/rest_api/v2/workspaces/1`, memory, end };
}

/** The rows of an answer, one after the other: a row begins where one has ended. */
async function* rowsOf(url: string): AsyncGenerator<Row> {
    const [response] = (await once(get(url, { headers: { accept: 'application/json' } }), 'response')) as [IncomingMessage];
    response.setEncoding('utf8');
    let text = '';
    for await (const chunk of response) {
        text += chunk;
        const end = text.lastIndexOf(',{"id":');
        if (end > 0) {
            yield* JSON.parse(`[${text.slice(1, end)}]`);
            text = text.slice(end);
        }
    }
    yield* JSON.parse(`[${text.slice(1)}`);
}

const { url, pool, stop } = await scanDatabase(2);
await pool.query(FILL);
const { base, memory, end } = await serving(url);
t.teardown(async () => {
    await end();
    await stop();
});

t.test(`shows ${HOSTS} hosts of an existing scan database as they are, in little memory`, async (t) => {
    for await (const _ of rowsOf(`${base}/services`)) {
        // So that all that is read once is there.
    }

    const before = await memory();
    let [most, count, wrong] = [before, 0, 0];
    const all = rowsOf(`${base}/hosts`);
    await all.next();
    await all.next();
    for await (const row of all) {
        count += 1;
        if (count % 5000 === 0) {
            most = Math.max(most, await memory());
        }
        if (JSON.stringify(row) !== JSON.stringify(expected(count))) {
            wrong += 1;
            if (wrong < 3) {
                t.same(row, expected(count));
            }
        }
    }
    t.strictSame([count, wrong], [HOSTS, 0]);
    const took = (most - before) / 2 ** 20;
    t.ok(took <= MOST_MEMORY, `${took.toFixed(1)} MiB`);
});

t.test('reads all that has changed in its order', async (t) => {
    let [count, disordered, last] = [0, 0, ''];
    for await (const row of rowsOf(`${base}/hosts?updated_since=2025-01-01T00:00:00Z`)) {
        const changed = String(row.updated_at);
        count += 1;
        disordered += changed < last ? 1 : 0;
        last = changed;
    }
    t.strictSame([count, disordered], [HOSTS - Math.floor(HOSTS / 9), 0]);
});

t.test('pages through them, and shows what is below any of them', async (t) => {
    const page: Row[] = [];
    for await (const row of rowsOf(`${base}/hosts?limit=100&after=${1000 + HOSTS - 150}`)) {
        page.push(row);
    }
    t.same(
        page.map(({ id }) => id),
        Array.from({ length: 100 }, (_, index) => 1000 + HOSTS - 149 + index),
    );
    const notes = [];
    for await (const { host_id, data } of rowsOf(`${base}/notes`)) {
        notes.push({ host_id, data });
    }
    t.equal(notes.length, HOSTS / 20 + 6);
    t.same(notes.slice(6, 9), [
        { host_id: 1001, data: { port: 1 } },
        { host_id: 1021, data: { raw: 'BAh7BjoKb3V0cHV0SSIHb2sGOgZFVA==' } },
        { host_id: 1041, data: {} },
    ]);
    const answer = await fetch(`${base}/hosts/${1000 + HOSTS}`);
    t.strictSame(await answer.json(), expected(HOSTS));
});
