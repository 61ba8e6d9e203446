import { readFileSync, writeFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import t from 'tap';
import { OCSF_VERSION } from '../../../../lib/webhooks/formats/ocsf.ts';
import { detectionFindingSchema } from '../../../interop/ocsf-schema.ts';
import { eventOf, fullInvestigation, made, smallInvestigation, testBody } from './events.ts';

/*
 * The rules of OCSF 1.8.0 (tag of 2026-03-18), made from its own files. `OCSF_SCHEMA` names a git directory of ocsf-schema: then the kept
 * rules are compared with it, and with UPDATE_OCSF=1 written again.
 */
const RULES = 'test/lib/webhooks/formats/ocsf-detection-finding.json';
const OBJECTS = ['metadata', 'product', 'finding_info', 'evidences', 'user', 'ldap_person', 'device'];

const checkout = process.env.OCSF_SCHEMA;
if (checkout !== undefined && process.env.UPDATE_OCSF === '1') {
    writeFileSync(RULES, `${JSON.stringify(detectionFindingSchema(checkout, OCSF_VERSION, OBJECTS), null, 4)}\n`);
}

const rules = JSON.parse(readFileSync(RULES, 'utf8')) as Record<string, unknown>;
const validate = new Ajv2020({ allErrors: true, strict: false }).compile(rules);

function finding(body: object, kind?: string): Record<string, unknown> {
    return JSON.parse(made('ocsf', eventOf(body, kind)).body.toString());
}

t.test('the kept rules are those of the schema', { skip: checkout === undefined && 'OCSF_SCHEMA names no checkout' }, (t) => {
    t.strictSame(detectionFindingSchema(checkout as string, OCSF_VERSION, OBJECTS), rules);
    t.end();
});

t.test('makes detection findings that the schema takes', (t) => {
    const bodies: readonly [object, string?][] = [
        [fullInvestigation],
        [smallInvestigation],
        [{ ...smallInvestigation, actors: { users: [], assets: [{ hostname: '10.1.2.3', shortname: 'x', link: 'y' }] } }],
        [testBody, 'test'],
        [{ hosts: 3, nested: { a: [1] } }, 'scan.finished'],
        [{ title: 'Disk', severity: 'High', link: 'javascript:alert(1)', timestamp: 'yesterday' }, 'disk.full'],
        [{}, 'nothing'],
    ];
    for (const [body, kind] of bodies) {
        const made = finding(body, kind);
        t.ok(validate(made), JSON.stringify(validate.errors));
    }
    t.end();
});

t.test('the rules refuse what is no finding', (t) => {
    const good = finding(fullInvestigation);
    for (const bad of [
        { ...good, class_uid: 2001 },
        { ...good, extra: true },
        { ...good, time: '2026-11-21T09:30:00.500Z' },
        { ...good, severity_id: 7 },
        { ...good, finding_info: { title: 'no uid' } },
        { ...good, evidences: [{ user: {} }] },
        { ...good, evidences: [{}] },
    ]) {
        t.notOk(validate(bad), JSON.stringify(bad).slice(0, 80));
    }
    t.end();
});

t.test('keeps everything of an investigation, in its place or under unmapped', (t) => {
    const {
        metadata,
        finding_info: info,
        evidences,
        unmapped,
        ...event
    } = finding(fullInvestigation) as Record<string, Record<string, unknown>>;
    t.match(event, { class_uid: 2004, type_uid: 200401, severity_id: 0, message: 'Suspicious <sign-in> & more', time: 1795253400500 });
    t.match(metadata, { version: '1.8.0', event_code: 'idr_investigation_created', product: { vendor_name: 'Acme' } });
    t.match(info, {
        uid: fullInvestigation.investigationId,
        title: fullInvestigation.title,
        desc: fullInvestigation.description,
        src_url: fullInvestigation.link,
    });
    t.strictSame(evidences, [
        { user: { name: 'Ann', email_addr: 'ann@example.com', ldap_person: { ldap_dn: 'CN=Ann,DC=example,DC=com' } } },
        { user: { name: 'Bob' } },
        { device: { hostname: 'db1.example.com', name: 'db1', type_id: 0, type: 'Unknown' } },
    ]);
    t.strictSame(unmapped, {
        investigationRrn: fullInvestigation.investigationRrn,
        actors: {
            users: [{ link: 'https://example.com/u/1' }, { link: 'https://example.com/u/2', emails: 'bob@example.com,b@example.com' }],
            assets: [{ hostname: 'db1', link: 'https://example.com/a/1' }],
        },
    });
    t.end();
});

t.test('a test is no alert', (t) => {
    const made = finding(testBody, 'test');
    t.match(made, { activity_id: 99, type_uid: 200499, severity_id: 1 });
    t.notOk('is_alert' in made);
    t.notOk('is_alert' in finding({}, 'scan.finished'), 'nor is what an application tells');
    t.equal(finding(smallInvestigation).is_alert, true);
    t.end();
});

t.test('what cannot stand in its place is under unmapped as it was', (t) => {
    const body = { title: 7, description: '', link: 'javascript:alert(1)', severity: 'odd', timestamp: 'last week', other: null };
    t.strictSame(finding(body, 'odd').unmapped, body);
    for (const timestamp of [1_795_253_400, null, '2026-11-21T09:30:00.123456Z']) {
        t.strictSame(finding({ timestamp }, 'odd').unmapped, { timestamp });
    }
    for (const timestamp of ['2026-11-21T10:30:00.500000+01:00', '2026-11-21 09:30']) {
        t.notOk('unmapped' in finding({ timestamp }, 'odd'), `${timestamp} is the time of the finding`);
    }
    t.end();
});
