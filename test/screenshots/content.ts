import { readFileSync, writeFileSync } from 'node:fs';
import { openEmbeddedDatabase } from '../../adapters/pglite/index.ts';
import { issueLicense, newLicenseKeyPair } from '../../lib/license/index.ts';
import { seeded } from '../support/seeded.ts';
import { fixture, json } from '../support/served.ts';

/*
 * What a deployment looks like that has been at work for a day. Made by its own commands where they can; what became of its deliveries is
 * written into the database, since nobody waits a day for pictures, nor calls these receivers.
 */

const EXPORTERS: readonly (readonly [name: string, url: string, ...more: string[]])[] = [
    ['SIEM ingest', 'https://siem.example.com/api/v1/events', '--rate', '50/s'],
    ['SOC channel', 'https://hooks.chat.example.com/services/T024/B88', '--format', 'slack'],
    ['Ticketing', 'https://tickets.example.com/hooks/scanwire', '--ordered'],
    ['Duty pager', 'https://events.pager.example.com/v2/enqueue', '--kinds', 'idr_investigation_*'],
    ['Data lake', 'https://lake.example.com/ingest', '--format', 'cloudevents'],
    ['Northwind', 'https://soc.northwind.example/webhooks', '--owner', 'northwind'],
    ['Former archive', 'https://archive.example.net/in'],
];

const KEYS: readonly (readonly string[])[] = [
    ['nightly report'],
    ['asset dashboard', '--expires', '90d'],
    ['publisher', '--scope', 'events:publish', '--scope', 'deliveries:read'],
];

/** Of a hundred of its deliveries so many fail at first; and within how many milliseconds it answers. */
const RECEIVERS: Readonly<Record<string, { readonly failing: number; readonly answers: number; readonly share: number }>> = {
    'SIEM ingest': { failing: 1, answers: 40, share: 1 },
    'SOC channel': { failing: 3, answers: 180, share: 0.5 },
    Ticketing: { failing: 9, answers: 420, share: 0.6 },
    'Duty pager': { failing: 2, answers: 130, share: 0.25 },
    'Data lake': { failing: 1, answers: 70, share: 0.8 },
    Northwind: { failing: 4, answers: 240, share: 0.3 },
    'Former archive': { failing: 0, answers: 90, share: 0.2 },
};

/** Minutes for which the tickets' receiver has been failing by now. */
const OUTAGE = 12;
const MINUTES = 24 * 60;

/** A delivery as it is written, with its attempts. */
interface Row {
    readonly exporter: string;
    /** Seconds ago, when its event was accepted. */
    readonly ago: number;
    readonly state: 'delivered' | 'pending' | 'exhausted';
    readonly attempts: readonly { readonly ago: number; readonly took: number; readonly outcome: object }[];
}

/** Fills an empty data folder. */
export async function fill(data: string): Promise<void> {
    await license(data);
    for (const [name = '', ...options] of KEYS) {
        await json(data, 'keys', 'create', name, ...options);
    }
    for (const [name, url, ...options] of EXPORTERS) {
        await json(data, 'exporters', 'create', '--name', name, '--url', url, ...options);
    }
    await json(data, 'keys', 'create', 'trial');
    const keys = (await json(data, 'keys', 'list')) as unknown as readonly { readonly id: string; readonly name: string }[];
    await json(data, 'keys', 'revoke', keys.find(({ name }) => name === 'trial')?.id ?? '');
    await work(data);
}

async function license(data: string): Promise<void> {
    const { privateKey, publicKey } = newLicenseKeyPair();
    const year = 365 * 86_400_000;
    const now = Date.now();
    const files = [`${data}-key.pem`, `${data}-license.txt`] as const;
    writeFileSync(files[0], publicKey);
    writeFileSync(
        files[1],
        await issueLicense({ holder: 'Example Corp', notBefore: new Date(now - year), expires: new Date(now + year) }, privateKey),
    );
    await json(data, 'license', 'trust', files[0]);
    await json(data, 'license', 'install', files[1]);
}

/** A day of it. */
async function work(data: string): Promise<void> {
    const pool = await openEmbeddedDatabase({ folder: data });
    try {
        const body = readFileSync(fixture('events/investigation.json'), 'utf8');
        const rows = history(seeded(7));
        await pool.query(DELIVERIES, [JSON.stringify(rows), JSON.stringify(JSON.parse(body))]);
        await pool.query(ATTEMPTS, [rows.at(-1)?.ago]);
        for (const statement of STATES) {
            await pool.query(statement);
        }
    } finally {
        await pool.end();
    }
}

/** More by day than by night, with a wave in the morning. */
function history(random: () => number): readonly Row[] {
    const rows: Row[] = [];
    for (let minute = MINUTES; minute > 0; minute -= 1) {
        const hour = (MINUTES - minute) / 60;
        const busy = 0.15 + 0.45 * Math.max(0, Math.sin(((hour - 6) / 24) * 2 * Math.PI)) + (minute < 60 ? 0.5 : 0);
        if (random() < busy) {
            rows.push(...deliveriesOf(minute * 60 - Math.floor(random() * 60), random));
        }
    }
    return rows;
}

function deliveriesOf(ago: number, random: () => number): readonly Row[] {
    return Object.entries(RECEIVERS)
        .filter(([name, { share }]) => random() < share && !(name === 'Former archive' && ago < 5 * 3600))
        .map(([exporter, { failing, answers }]) => {
            const took = Math.round(answers * (0.6 + random() + (random() < 0.05 ? 4 : 0)));
            const good = { ago, took, outcome: outcome('delivered', took) };
            const isOut = exporter === 'Ticketing' && ago < OUTAGE * 60;
            if (isOut || random() * 100 < failing) {
                const bad = { ago, took, outcome: outcome('server_error', took) };
                const isOver = !isOut && random() < 0.3;
                const later = Math.max(1, ago - 30);
                const again = { ago: later, took, outcome: outcome(isOver || isOut ? 'server_error' : 'delivered', took) };
                return { exporter, ago, state: isOut ? 'pending' : isOver ? 'exhausted' : 'delivered', attempts: [bad, again] };
            }
            return { exporter, ago, state: 'delivered', attempts: [good] };
        });
}

function outcome(code: 'delivered' | 'server_error', total: number): object {
    const step = (share: number): number => Math.max(1, Math.round(total * share));
    const timings = { dns: step(0.04), connect: step(0.14), tls: step(0.22), firstByte: step(0.58), total };
    const said = code === 'delivered' ? { status: 202, detail: 'Answered 202' } : { status: 503, detail: 'Answered 503' };
    const address = '192.0.2.17:443';
    return { code, ...said, retryAfter: code === 'delivered' ? null : 30_000, timings, address, fingerprint: null };
}

/** `$1` the rows, oldest first, `$2` the body of their events. */
const DELIVERIES = `
with clock as materialized (
    select scanwire.now() as at
),
rows as materialized (
    select r.*, row_number() over () as number
    from json_to_recordset($1::json) as r (exporter text, ago double precision, state text, attempts json)
),
moments as materialized (
    select r.ago, gen_random_uuid() as id from rows r group by r.ago
),
added as (
    insert into scanwire.events (id, kind, body, created_at)
    select m.id, 'idr_investigation_created', $2::text, clock.at - m.ago * interval '1 second' from moments m cross join clock
)
insert into scanwire.deliveries (
    event_id, exporter_id, due_at, queued_at, claimed_at, finished_at, priority, attempts, round, collector, state, last_code, token
)
select
    m.id, e.id, clock.at + case when r.state = 'pending' then interval '1 hour' else - r.ago * interval '1 second' end,
    clock.at - r.ago * interval '1 second', clock.at - r.ago * interval '1 second',
    case when r.state <> 'pending' then
        clock.at + ((r.attempts->-1->>'took')::float8 / 1000 - (r.attempts->-1->>'ago')::float8) * interval '1 second'
    end,
    case when r.state = 'pending' then 2 else 1 end, json_array_length(r.attempts), 1, e.collector, r.state,
    r.attempts->-1->'outcome'->>'code', r.attempts::text
from rows r
cross join clock
join moments m on m.ago = r.ago
join scanwire.exporters e on e.name = r.exporter
order by r.number`;

/** Of the deliveries, which hold them as their tokens until then; `$1` how many seconds ago the last event was. */
const ATTEMPTS = `
with clock as materialized (
    select max(v.created_at) + interval '1 second' * $1::float8 as at from scanwire.events v
),
added as (
    insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
    select
        d.id, a.number, clock.at - (a.value->>'ago')::float8 * interval '1 second',
        clock.at + ((a.value->>'took')::float8 / 1000 - (a.value->>'ago')::float8) * interval '1 second',
        d.id::text || a.number, false, a.value->'outcome'
    from scanwire.deliveries d
    cross join clock
    cross join json_array_elements(d.token::json) with ordinality as a (value, number)
)
update scanwire.deliveries set token = null`;

const STATES: readonly string[] = [
    `insert into scanwire.replays (id, exporter_id, failed_since, rate, total, done, state, created_at, finished_at, last_seq, paid_until)
        select gen_random_uuid(), e.id, r.at - interval '1 hour', r.rate, r.total, r.done, r.state, r.at, r.at + interval '1 minute', 0, r.at
        from scanwire.exporters e
        join (values
            ('SOC channel', scanwire.now() - interval '7 hours', 100, 212, 212, 'done'),
            ('Ticketing', scanwire.now() - interval '26 minutes', 5, 64, 41, 'cancelled')
        ) r (name, at, rate, total, done, state) on r.name = e.name
        order by r.at`,
    `update scanwire.exporters set state = 'running', created_at = created_at - interval '9 days', last_outcome_at = scanwire.now() - interval '20 seconds',
        last_outcome = '{"code":"delivered","detail":"Answered 202"}'`,
    `update scanwire.exporters set consecutive_failures = 14, failing_since = scanwire.now() - interval '${OUTAGE} minutes',
        failed_at = scanwire.now() - interval '40 seconds', probe_at = scanwire.now() + interval '50 minutes', unwell = true,
        last_outcome = '{"code":"server_error","detail":"Answered 503"}' where name = 'Ticketing'`,
    `update scanwire.exporters set state = 'stopped', stop_reason = 'The receiver answered 410 Gone', last_outcome_at = scanwire.now() - interval '5 hours',
        last_outcome = '{"code":"gone","detail":"Answered 410"}' where name = 'Former archive'`,
    `update scanwire.exporters set paused_at = scanwire.now() - interval '2 hours', last_outcome_at = scanwire.now() - interval '2 hours' where name = 'Northwind'`,
    `update scanwire.api_keys set created_at = created_at - interval '40 days', last_used_at = scanwire.now() - interval '3 minutes' where name <> 'trial'`,
];
